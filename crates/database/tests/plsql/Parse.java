// Reads scripts of SQL and PL/SQL, the files of a folder, with PMD's grammar: each must be one, and none may be one once a word
// or sign that it needs is taken out. Fails with the scripts for which this does not hold.
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import net.sourceforge.pmd.lang.LanguageProcessorRegistry;
import net.sourceforge.pmd.lang.LanguageRegistry;
import net.sourceforge.pmd.lang.PmdCapableLanguage;
import net.sourceforge.pmd.lang.ast.Parser;
import net.sourceforge.pmd.lang.ast.SemanticErrorReporter;
import net.sourceforge.pmd.lang.document.FileId;
import net.sourceforge.pmd.lang.document.TextDocument;

class Parse {
    record Script(String text, boolean broken) {}

    // Each of these is required wherever it occurs. PMD only skims DDL and LOCK, which tests compare with the reference, and what
    // follows the values of an UPDATE; DELETE works without FROM.
    static final List<String> NEEDED = List.of("LOOP", "END IF", "BEGIN", "THEN", ":=", "IS\n", "SET ", "WHERE", "FROM ",
        "VALUES", "TABLE ", "(", ")", " ||", "BETWEEN");
    static final List<String> READ = List.of("DECLARE", "BEGIN", "SELECT", "INSERT", "UPDATE", "DELETE");
    static final String ENDLESS = "the parser does not come to an end";

    public static void main(String[] args) throws Exception {
        var scripts = new ArrayList<Script>();
        var blocks = 0;
        try (var files = Files.list(Path.of(args[0]))) {
            for (Path file : files.sorted().toList()) {
                var text = Files.readString(file);
                // PMD needs the semicolon that a driver does not send. Its grammar reads OFFSET or FETCH, but not both; a test in
                // Rust compares the clause with the reference.
                var whole = text.replaceAll(" OFFSET \\d+ ROWS FETCH NEXT ", " FETCH FIRST ");
                scripts.add(new Script(whole.endsWith(";") ? whole : whole + ";", false));
                // The blocks of the workloads differ in a number or two.
                if (READ.stream().anyMatch(text::startsWith) && !(text.startsWith("DECLARE") && ++blocks > 2)) {
                    breakUp(text, scripts);
                }
            }
        }
        var pool = Executors.newFixedThreadPool(Runtime.getRuntime().availableProcessors());
        var reasons = new ArrayList<Future<String>>();
        for (var script : scripts) {
            reasons.add(pool.submit(() -> reason(script)));
        }
        int broken = 0, endless = 0, wrong = 0;
        for (int i = 0; i < scripts.size(); i++) {
            var script = scripts.get(i);
            var reason = reasons.get(i).get();
            broken += script.broken ? 1 : 0;
            endless += ENDLESS.equals(reason) ? 1 : 0;
            if (script.broken == (reason == null)) {
                wrong++;
                System.err.println((reason == null ? "accepted though it is broken" : reason) + ":\n" + script.text + "\n");
            }
        }
        System.err.println(scripts.size() + " scripts, " + broken + " of them broken, " + endless + " without an end, " + wrong + " wrong");
        // A machine that is too slow must not look like a parser that refuses.
        Runtime.getRuntime().halt(wrong == 0 && broken > 100 && endless * 10 <= broken ? 0 : 1);
    }

    static void breakUp(String text, List<Script> scripts) {
        for (var word : NEEDED) {
            if ((word.equals("WHERE") || word.equals("FROM ")) && !text.startsWith("SELECT")) {
                continue;
            }
            var at = text.indexOf(word);
            for (int n = 0; n < 2 && at >= 0; n++, at = text.indexOf(word, at + word.length())) {
                scripts.add(new Script(text.substring(0, at) + text.substring(at + word.length()) + ";", true));
            }
        }
    }

    // Why the script is none; null if it is one.
    static String reason(Script script) throws InterruptedException {
        var language = (PmdCapableLanguage) LanguageRegistry.PMD.getLanguageById("plsql");
        var processor = language.createProcessor(language.newPropertyBundle());
        var registry = LanguageProcessorRegistry.singleton(processor);
        var reason = new String[] {ENDLESS};
        var worker = new Thread(() -> {
            try (var document = TextDocument.readOnlyString(script.text, FileId.fromPathLikeString("script"), language.getDefaultVersion())) {
                processor.services().getParser().parse(new Parser.ParserTask(document, SemanticErrorReporter.noop(), registry));
                reason[0] = null;
            } catch (Exception | Error e) {
                reason[0] = String.valueOf(e.getMessage()).replace('\n', ' ');
            }
        });
        // At the end of a script that is cut off PMD may look for a sign for ever.
        worker.setDaemon(true);
        worker.start();
        worker.join(script.broken ? 1_000 : 10_000);
        if (!worker.isAlive()) {
            return reason[0];
        }
        end(worker);
        return ENDLESS;
    }

    // Threads that go on for ever take the CPU from all others. From Java 20 on they cannot be ended.
    static void end(Thread worker) {
        try {
            Thread.class.getMethod("stop").invoke(worker);
        } catch (ReflectiveOperationException e) {
            worker.setPriority(Thread.MIN_PRIORITY);
        }
    }
}
