// Reads scripts of SQL and PL/SQL with PMD's grammar and says of each whether it is one.
// One line a script: «ok NAME», or «bad NAME REASON».
import java.nio.file.Files;
import java.nio.file.Path;
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
        try (var files = Files.list(Path.of(args[0]))) {
            for (Path file : files.sorted().toList()) {
                var name = file.getFileName().toString();
                var text = Files.readString(file);
                try (var document = TextDocument.readOnlyString(text, FileId.fromPathLikeString(name), language.getDefaultVersion())) {
                    processor.services().getParser().parse(new Parser.ParserTask(document, SemanticErrorReporter.noop(), registry));
                    System.out.println("ok " + name);
                } catch (Exception | Error e) {
                    System.out.println("bad " + name + " " + String.valueOf(e.getMessage()).replace('\n', ' '));
                }
            }
        }
    }
}
