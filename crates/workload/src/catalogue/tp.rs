//! Common parts of the transaction-processing workloads: accounts, stock, orders, and statements on them.
//!
//! Deadlocks are impossible, because all transactions lock rows in the same order: one account, then stock by rising
//! key (each order line is drawn from its own segment of keys), then new rows with unique keys. Reads lock nothing.

use loadline_model::{Capability, column};

use crate::instrument::Instrument;
use crate::limit::Limit;
use crate::named_for::{Component, NamedFor, ONE_WRITER};
use crate::params::{Param, Params};
use crate::program::{Commit, Effect, Generator, Program, Statement, Step};
use crate::table::{ColumnDef, Fill, RowCount, Table};
use crate::workload::{Consistency, Evidence, Kpi, Workload};

/// Initial balance of an account.
const OPENING: i64 = 1_000_000;
/// Initial stock of an item.
const IN_STOCK: i64 = 1_000_000;
/// Bytes of text of an account, item or order.
const TEXT_BYTES: u32 = 80;
/// Rows of a report.
const REPORT_ROWS: u64 = 500;
/// Lines of an order of the heavy transaction; 3 statements each.
const LINES: u64 = 7;

/// Accounts with balance and savings, and a counter of changes.
pub(super) const ACCOUNT: Table = Table {
    name: "account",
    columns: &[
        ColumnDef::int("id", Fill::Key),
        ColumnDef::int("balance", Fill::Constant(OPENING)),
        ColumnDef::int("savings", Fill::Zero),
        ColumnDef::int("spent", Fill::Zero),
        ColumnDef::int("changes", Fill::Zero),
        ColumnDef::bytes("payload", Fill::PayloadOf(TEXT_BYTES)),
    ],
    rows: RowCount::Total("accounts"),
    ..Table::BASE
};

/// Items in stock.
const STOCK: Table = Table {
    name: "stock",
    columns: &[
        ColumnDef::int("id", Fill::Key),
        ColumnDef::int("quantity", Fill::Constant(IN_STOCK)),
        ColumnDef::int("changes", Fill::Zero),
        ColumnDef::bytes("payload", Fill::PayloadOf(TEXT_BYTES)),
    ],
    rows: RowCount::Total("items"),
    ..Table::BASE
};

/// Orders: the amount that a buyer owes.
const ORDERS: Table = Table {
    name: "orders",
    columns: &[
        ColumnDef::int("id", Fill::Key),
        ColumnDef::int("buyer", Fill::Zero),
        ColumnDef::int("amount", Fill::Zero),
        ColumnDef::bytes("payload", Fill::PayloadOf(TEXT_BYTES)),
    ],
    indexes: &["buyer"],
    ..Table::BASE
};

/// Lines of orders: quantities taken from stock.
const LINE: Table = Table {
    name: "order_line",
    columns: &[
        ColumnDef::int("id", Fill::Key),
        ColumnDef::int("order_id", Fill::Zero),
        ColumnDef::int("item", Fill::Zero),
        ColumnDef::int("quantity", Fill::Zero),
    ],
    indexes: &["order_id"],
    ..Table::BASE
};

/// Entries of a ledger; a report reads consecutive ones.
pub(super) const ENTRY: Table = Table {
    name: "entry",
    columns: &[
        ColumnDef::int("id", Fill::Key),
        ColumnDef::int("account", Fill::Scattered { salt: 41, range: 1_000_000 }),
        ColumnDef::int("day", Fill::Scattered { salt: 42, range: 3_650 }),
        ColumnDef::int("amount", Fill::Scattered { salt: 43, range: 100_000 }),
        ColumnDef::bytes("payload", Fill::PayloadOf(40)),
    ],
    rows: RowCount::Total("entries"),
    ..Table::BASE
};

/// Number of accounts. With few of them, transactions wait for each other's rows.
pub(super) const ACCOUNTS: Param = Param {
    name: "accounts",
    default: 100_000,
    min: 2,
    max: 1 << 40,
    meaning: "accounts (fewer: more waits for rows)",
};
/// Number of items.
pub(super) const ITEMS: Param = Param {
    name: "items",
    default: 10_000,
    min: LINES as i64,
    max: 1 << 40,
    meaning: "items in stock (fewer: more waits for rows)",
};
/// Number of entries.
pub(super) const ENTRIES: Param = Param {
    name: "entries",
    default: 200_000,
    min: REPORT_ROWS as i64,
    max: 1 << 40,
    meaning: "entries of the ledger",
};

/// KPIs of all of them.
pub(super) const KPIS: &[Kpi] = &[
    Kpi { column: column::COMMIT_THROUGHPUT_TPS, title: "transactions" },
    Kpi { column: column::TRANSACTION_TIME_NS_P50, title: "median transaction time" },
    Kpi { column: column::TRANSACTION_TIME_NS_P99, title: "99th percentile of transaction time" },
];

/// No money is created or lost: what an account no longer holds, it has spent.
pub(super) const MONEY: Consistency = Consistency {
    query: "SELECT SUM(balance + savings + spent) - COUNT(*) * 1000000 FROM {account}",
    what: "what all accounts hold and have spent equals what they held at first",
};

/// No account is lost. [`MONEY`] would not notice it.
pub(super) const NONE_LOST: Consistency =
    Consistency { query: "SELECT COUNT(*) - :accounts FROM {account}", what: "there are as many accounts as at first" };

/// Buyers have spent the sum of all orders.
const SPENT: Consistency = Consistency {
    query: "SELECT a.n - o.n FROM (SELECT SUM(spent) AS n FROM {account}) a, \
            (SELECT COALESCE(SUM(amount), 0) AS n FROM {orders}) o",
    what: "accounts have spent the sum of all orders",
};

/// The stock taken equals the sum of all order lines.
const TAKEN: Consistency = Consistency {
    query: "SELECT s.n - l.n FROM (SELECT SUM(1000000 - quantity) AS n FROM {stock}) s, \
            (SELECT COALESCE(SUM(quantity), 0) AS n FROM {order_line}) l",
    what: "the stock taken equals what was ordered",
};

/// Common fields of those that change rows: a transaction as a whole.
pub(super) const BASE: Workload = Workload {
    group: "transaction-processing",
    named_for: NamedFor {
        components: &[Component::Log, Component::Cpu],
        doing: "whole transactions: statements, locks and a durable commit",
        instead: &[ONE_WRITER],
    },
    spoiled_by: "A commit that does not wait for the device, tables so small that transactions wait for each other's rows (the test then measures these waits), a client short of CPU. With the client driver, also the network: each statement is a round trip.",
    kpis: KPIS,
    needs: &[Capability::Rows, Capability::CommitWait],
    instruments: &[Instrument::Limit(&[Limit::Statements, Limit::Log])],
    ..Workload::BASE
};

/// Common fields of those that only read.
pub(super) const READING: Workload = Workload {
    named_for: NamedFor { components: &[Component::Cpu], doing: "short transactions on cached rows", instead: &[] },
    spoiled_by: "A cache that does not hold the table (report it with the figure, or make the table larger than the cache to measure storage as well), a client short of CPU. With the client driver, also the network.",
    needs: &[Capability::Rows, Capability::ReadRows],
    instruments: &[Instrument::Limit(&[Limit::Statements])],
    ..BASE
};

/// Tables of the mix.
pub(super) const MIXED_TABLES: &[Table] = &[ACCOUNT, STOCK, ORDERS, LINE, ENTRY];

/// Common fields of those that order.
pub(super) const ORDERING: Workload = Workload {
    tables: &[ACCOUNT, STOCK, ORDERS, LINE],
    params: &[ACCOUNTS, ITEMS],
    needs: &[Capability::Rows, Capability::ReadRows, Capability::CommitWait],
    // Each change is counted in its row, and each new row counts as one.
    evidence: Some(Evidence {
        query: "SELECT a.n + s.n + o.n + l.n FROM (SELECT SUM(changes) AS n FROM {account}) a, \
                (SELECT SUM(changes) AS n FROM {stock}) s, (SELECT COUNT(*) AS n FROM {orders}) o, \
                (SELECT COUNT(*) AS n FROM {order_line}) l",
        counts: "changed and new rows",
    }),
    consistency: &[NONE_LOST, MONEY],
    // Orders and lines are new in every test, but money and stock also hold the changes of earlier tests: so the
    // difference must stay the same.
    unchanged: &[SPENT, TAKEN],
    ..BASE
};

/// Steps of one kind of transaction.
pub(super) type Steps = fn(&mut Statements, &Params) -> Vec<Step>;

/// The program of one kind of transaction.
pub(super) fn program(params: &Params, steps: Steps) -> Program {
    let mut statements = Statements::new();
    let mut body = vec![sequence()];
    body.extend(steps(&mut statements, params));
    statements.program(body)
}

/// The statements of a program, each once.
pub(super) struct Statements(Vec<Statement>);

impl Statements {
    pub(super) fn new() -> Statements {
        Statements(Vec::new())
    }

    /// A step that executes `sql`.
    fn execute(&mut self, sql: &str, effect: Effect) -> Step {
        let statement = Statement::fixed(sql, effect);
        let at = self.0.iter().position(|s| *s == statement).unwrap_or_else(|| {
            self.0.push(statement);
            self.0.len() - 1
        });
        Step::Execute { statement: at }
    }

    /// The program with these statements and `body`.
    pub(super) fn program(self, body: Vec<Step>) -> Program {
        Program { statements: self.0, body, commit: Commit::Wait }
    }
}

/// Starts a transaction: all its random numbers are functions of the sequence.
pub(super) fn sequence() -> Step {
    Step::bind("seq", Generator::Sequence)
}

fn number(var: &'static str, from: i64, range: i64, salt: u32) -> Step {
    Step::bind(var, Generator::Uniform { from, range: range.max(1) as u64, salt })
}

/// One account by its key.
pub(super) fn lookup(s: &mut Statements, params: &Params) -> Vec<Step> {
    vec![
        number("account", 0, params.get("accounts"), 0),
        s.execute(
            "SELECT id, balance, savings, spent, changes, payload FROM {account} WHERE id = :account",
            Effect::Read(1),
        ),
    ]
}

/// The entries of a report.
pub(super) fn report(s: &mut Statements, params: &Params) -> Vec<Step> {
    let rows = REPORT_ROWS as i64;
    vec![
        number("first", 0, params.get("entries") - rows + 1, 1),
        Step::bind("last", Generator::Plus { var: "first", by: rows - 1 }),
        s.execute(
            "SELECT id, account, day, amount, payload FROM {entry} WHERE id BETWEEN :first AND :last ORDER BY id",
            Effect::Read(REPORT_ROWS),
        ),
    ]
}

/// Moves money from the balance of an account to its savings: one statement.
pub(super) fn light(s: &mut Statements, params: &Params) -> Vec<Step> {
    vec![
        number("account", 0, params.get("accounts"), 0),
        number("amount", 1, 100, 2),
        s.execute(
            "UPDATE {account} SET balance = balance - :amount, savings = savings + :amount, changes = changes + 1 \
             WHERE id = :account",
            Effect::Change(1),
        ),
    ]
}

/// Reads the buyer's account and takes the money from it.
fn payment(s: &mut Statements, params: &Params) -> Vec<Step> {
    vec![
        number("account", 0, params.get("accounts"), 0),
        number("amount", 1, 1000, 2),
        s.execute("SELECT balance, savings, spent, payload FROM {account} WHERE id = :account", Effect::Read(1)),
        s.execute(
            "UPDATE {account} SET balance = balance - :amount, spent = spent + :amount, changes = changes + 1 \
             WHERE id = :account",
            Effect::Change(1),
        ),
    ]
}

/// Reduces the stock of an item, drawn from `range` keys from `from` on.
fn take(s: &mut Statements, from: i64, range: i64) -> Vec<Step> {
    vec![
        number("item", from, range, 6),
        number("quantity", 1, 9, 7),
        s.execute(
            "UPDATE {stock} SET quantity = quantity - :quantity, changes = changes + 1 WHERE id = :item",
            Effect::Change(1),
        ),
    ]
}

/// The order itself.
fn order(s: &mut Statements) -> Vec<Step> {
    vec![
        Step::bind("order", Generator::NewKey),
        Step::bind("payload", Generator::Payload { bytes: TEXT_BYTES }),
        s.execute(
            "INSERT INTO {orders} (id, buyer, amount, payload) VALUES (:order, :account, :amount, :payload)",
            Effect::Change(1),
        ),
    ]
}

/// A line of the order.
fn line(s: &mut Statements) -> Vec<Step> {
    vec![
        Step::bind("line", Generator::NewKey),
        s.execute(
            "INSERT INTO {order_line} (id, order_id, item, quantity) VALUES (:line, :order, :item, :quantity)",
            Effect::Change(1),
        ),
    ]
}

/// An order of one line: 5 statements.
pub(super) fn medium(s: &mut Statements, params: &Params) -> Vec<Step> {
    let mut body = payment(s, params);
    body.extend(take(s, 0, params.get("items")));
    body.extend(order(s));
    body.extend(line(s));
    body
}

/// An order of seven lines, read again at the end: 25 statements. Advances the sequence by [`LINES`].
pub(super) fn heavy(s: &mut Statements, params: &Params) -> Vec<Step> {
    let mut body = payment(s, params);
    body.extend(order(s));
    let (items, lines) = (params.get("items"), LINES as i64);
    for n in 0..lines {
        // Segments of rising keys; the last one takes the remainder.
        let from = n * (items / lines);
        let to = if n + 1 == lines { items } else { from + items / lines };
        body.push(sequence());
        body.extend(take(s, from, to - from));
        // Read before the change, as applications do.
        let look = s.execute("SELECT quantity, payload FROM {stock} WHERE id = :item", Effect::Read(1));
        body.insert(body.len() - 1, look);
        body.extend(line(s));
    }
    body.push(s.execute("SELECT item, quantity FROM {order_line} WHERE order_id = :order", Effect::Read(LINES)));
    body
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use crate::program::{Effect, Program};
    use crate::{Arg, Execute, JobStart, Piece, Stream, find, pool};

    /// Records what a transaction locks: table and key, which is the last argument of an UPDATE.
    struct Locks<'a>(&'a Program, Vec<(String, i64)>, u64);

    impl Execute for Locks<'_> {
        type Error = std::convert::Infallible;

        fn execute(&mut self, statement: usize, args: &[Arg<'_>]) -> Result<u64, Self::Error> {
            let s = &self.0.statements[statement];
            let table = s.template.pieces.iter().find_map(|p| if let Piece::Table(t) = p { Some(t) } else { None });
            let is_update = matches!(&s.template.pieces[0], Piece::Sql(sql) if sql.starts_with("UPDATE"));
            if let (true, Some(Arg::Int(key))) = (is_update, args.last()) {
                self.1.push((table.unwrap().clone(), *key));
            }
            self.2 += if let Effect::Change(rows) = s.effect { rows } else { 0 };
            Ok(s.effect.rows().unwrap())
        }

        fn bulk(&mut self, _: usize, _: i64, rows: u32) -> Result<u64, Self::Error> {
            Ok(rows.into())
        }
    }

    /// Deadlocks are impossible by construction: every transaction locks its rows in rising order, and tables in one
    /// order (account before stock).
    #[test]
    fn rows_are_locked_in_one_order() {
        for code in ["TP-LIGHT", "TP-MEDIUM", "TP-HEAVY", "TP-MIXED"] {
            let w = find(code).unwrap();
            // The fewest rows that are allowed: segments of one item.
            let few = BTreeMap::from([("accounts".to_owned(), 2), ("items".to_owned(), 7)]);
            let few = few.into_iter().filter(|(n, _)| w.params.iter().any(|p| p.name == n)).collect();
            for given in [BTreeMap::new(), few] {
                let params = w.params(&given).unwrap();
                let program = (w.program)(&params);
                let start = JobStart { first_key: 0, new_key: 0, draw: 77 };
                let mut stream = Stream::new(&program, start, Arc::from(pool(1, 0, 0.0)), 0).unwrap();
                let (mut changed, mut counted) = (0, 0);
                for _ in 0..500 {
                    let mut locks = Locks(&program, Vec::new(), 0);
                    stream.transaction(&mut locks).unwrap();
                    let is_rising = locks.1.windows(2).all(|w| w[0] < w[1]);
                    assert!(is_rising, "{code}: {:?}", locks.1);
                    (changed, counted) = (changed + stream.rows_changed(), counted + locks.2);
                }
                assert_eq!(changed, counted);
                let again = Stream::new(&program, start, Arc::from(pool(1, 0, 0.0)), 0).unwrap();
                assert_eq!(
                    again.rows_changed_by(&program, 500),
                    changed,
                    "{code}: the work can be computed afterwards"
                );
            }
        }
    }

    #[test]
    fn transactions_have_as_many_statements_as_they_say() {
        for (code, statements) in
            [("TP-LOOKUP", 1), ("TP-REPORT", 1), ("TP-LIGHT", 1), ("TP-MEDIUM", 5), ("TP-HEAVY", 25), ("TP-MIXED", 25)]
        {
            let w = find(code).unwrap();
            let program = (w.program)(&w.params(&BTreeMap::new()).unwrap());
            assert_eq!(program.statements_per_tx(), statements, "{code}");
        }
    }
}
