// Reads scripts of SQL and PL/SQL with PMD's grammar and says of each whether it is one.
// One line a script: 'ok NAME', or 'bad NAME REASON'.
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
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
    public static void main(String[] args) throws Exception {
        var language = (PmdCapableLanguage) LanguageRegistry.PMD.getLanguageById("plsql");
        var processor = language.createProcessor(language.newPropertyBundle());
        var registry = LanguageProcessorRegistry.singleton(processor);
        var pool = Executors.newFixedThreadPool(Runtime.getRuntime().availableProcessors());
        var all = new ArrayList<Future<String>>();
        try (var files = Files.list(Path.of(args[0]))) {
            for (Path file : files.sorted().toList()) {
                var name = file.getFileName().toString();
                var text = Files.readString(file);
                all.add(pool.submit(() -> {
                    var reason = new String[] {"the parser does not come to an end"};
                    var worker = new Thread(() -> {
                        try (var document = TextDocument.readOnlyString(text, FileId.fromPathLikeString(name), language.getDefaultVersion())) {
                            processor.services().getParser().parse(new Parser.ParserTask(document, SemanticErrorReporter.noop(), registry));
                            reason[0] = null;
                        } catch (Exception | Error e) {
                            reason[0] = String.valueOf(e.getMessage()).replace('\n', ' ');
                        }
                    });
                    // At the end of a script that is cut off PMD may look for a sign for ever.
                    worker.setDaemon(true);
                    worker.start();
                    worker.join(name.endsWith("-whole") ? 10_000 : 1_000);
                    var said = worker.isAlive() ? "the parser does not come to an end" : reason[0];
                    if (worker.isAlive()) {
                        end(worker);
                    }
                    return said == null ? "ok " + name : "bad " + name + " " + said;
                }));
            }
        }
        for (var said : all) {
            System.out.println(said.get());
        }
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    // Threads that go on for ever take the CPU from all others. From Java 20 on they cannot be ended.
    private static void end(Thread worker) {
        try {
            Thread.class.getMethod("stop").invoke(worker);
        } catch (ReflectiveOperationException e) {
            worker.setPriority(Thread.MIN_PRIORITY);
        }
    }
}
