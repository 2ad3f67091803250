//! The user's own scripts and workload files: their texts, names, and what a server said of them.

use super::names::Names;
use crate::RunData;

/// How a script of the database's own benchmark is named, which everybody has.
const BUILTIN: &str = "builtin:";

impl Names {
    /// Leaves out the texts of workload files and what the server said of scripts: both are the user's words. Scripts are known by a
    /// number, and so is the workload that is named after one.
    pub(super) fn hide_scripts(&mut self, run: &mut RunData) {
        let mut scripts: Vec<[String; 2]> = Vec::new();
        let plan = &mut run.manifest.plan;
        for file in &mut plan.workload_files {
            let numbered: Vec<[String; 2]> =
                script_names(&file.text).into_iter().map(|name| [self.script(&name), name]).collect();
            let codes: Vec<String> = file.text.lines().filter_map(|line| quoted(line, "code")).collect();
            if let ([[number, _]], [code]) = (numbered.as_slice(), codes.as_slice())
                && code.starts_with("PGBENCH-")
                && !number.starts_with(BUILTIN)
            {
                self.word(code, &number.to_uppercase());
            }
            scripts.extend(numbered);
            // Comparisons look for the code, and whether texts are equal.
            let left_out = self.found("text", &file.text);
            let codes = codes.iter().map(|code| format!("code = {}\n", serde_json::Value::from(code.as_str())));
            file.text = codes.chain([format!("# {left_out}: left out\n")]).collect();
        }
        let mut hide = |text: &mut String| *text = without_message(text, &scripts);
        plan.skipped.iter_mut().map(|skipped| &mut skipped.reason).for_each(&mut hide);
        run.warnings.iter_mut().for_each(&mut hide);
        for record in &mut run.records {
            let details = record.checks.iter_mut().map(|check| &mut check.detail);
            record.invalid_reason.iter_mut().chain(&mut record.notes).chain(details).for_each(&mut hide);
            for (mut text, count) in std::mem::take(&mut record.error_texts) {
                hide(&mut text);
                *record.error_texts.entry(text).or_default() += count;
            }
        }
    }

    /// What stands for the script `name`.
    fn script(&mut self, name: &str) -> String {
        if name.starts_with(BUILTIN) {
            return name.to_owned();
        }
        let number = self.found("script", name);
        // A plain word stands in texts for other reasons.
        if name.contains(['.', '/']) {
            self.word(name, &number);
        }
        number
    }
}

/// Value of `key = "value"`, written as in JSON.
fn quoted(line: &str, key: &str) -> Option<String> {
    let value = line.strip_prefix(key)?.trim_start().strip_prefix('=')?;
    serde_json::from_str(value.trim()).ok()
}

/// Names of the scripts in a workload file.
fn script_names(text: &str) -> Vec<String> {
    let tables = text.split("[[script]]\n").skip(1);
    tables.filter_map(|table| table.lines().find_map(|line| quoted(line, "name"))).collect()
}

/// `text`, up to the code of the error if it cites one of `scripts` (what stands for it, and its name):
/// `script-1:1:15: ERROR 42P01 (left out)`. Whatever follows may be the server's message.
fn without_message(text: &str, scripts: &[[String; 2]]) -> String {
    let cited = scripts.iter().filter_map(|[number, name]| {
        let mut all = text.match_indices(name.as_str()).map(|(at, _)| (at, at + name.len(), number));
        all.find(|(_, end, _)| text[*end..].starts_with(':'))
    });
    let Some((at, end, number)) = cited.min() else { return text.to_owned() };
    let code = |c: char| c.is_ascii_digit() || c.is_ascii_uppercase() || c == ':';
    let kept = text[end..].split_inclusive(' ').take_while(|word| word.trim_end().chars().all(code));
    let kept: String = kept.take(3).collect();
    format!("{}{number}{} (left out)", &text[..at], kept.trim_end_matches([' ', ':']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_ends_with_the_code_of_the_error() {
        let scripts = [["script-1", "ps/a.sql"], ["script-2", "b"]].map(|script| script.map(str::to_owned));
        for (text, without) in [
            ("ps/a.sql:1:15: ERROR 42P01: relation \"x\" does not exist", "script-1:1:15: ERROR 42P01 (left out)"),
            ("job 0: ps/a.sql:1:1: it leaves a transaction open", "job 0: script-1:1:1 (left out)"),
            ("0.5 % of ps/a.sql", "0.5 % of ps/a.sql"),
            (
                "job 1: b:3:4: ERROR 23505: key (ID)=(7); ps/a.sql:1:1: ERROR 1",
                "job 1: script-2:3:4: ERROR 23505 (left out)",
            ),
        ] {
            assert_eq!(without_message(text, &scripts), without);
        }
    }

    #[test]
    fn names_of_scripts_are_found() {
        let text = "code = \"X\"\n[[define]]\nname = \"n\"\n[[script]]\nname = \"a\\\"b/c.sql\"\nweight = 1\ntext = \"SELECT\"\n";
        assert_eq!(script_names(text), ["a\"b/c.sql"]);
    }
}
