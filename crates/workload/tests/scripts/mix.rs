//! Scripts mixed by weight, and where a command of theirs is.

use loadline_workload::script::Event;

use crate::{mix, statement};

#[test]
fn scripts_are_drawn_by_weight_and_each_client_draws_its_own() {
    let mixed = mix(&[("A", 3), ("B", 1), ("C", 0)], &[]).unwrap();
    let drawn = |number: u32| {
        let mut client = mixed.client(number, 2, 42, 1);
        let draw = |_| {
            client.choose();
            let sql = statement(&mut client);
            assert_eq!(client.advance(), Ok(Event::End));
            sql
        };
        (0..4000).map(draw).collect::<Vec<String>>()
    };
    let (first, second) = (drawn(0), drawn(1));
    assert!(first != second && first == drawn(0) && !first.contains(&"C".to_owned()));
    // Four standard deviations of 4000 draws.
    assert!([first, second].iter().all(|drawn| drawn.iter().filter(|sql| *sql == "A").count().abs_diff(3000) < 110));
    assert!(mix(&[("A", 0)], &[]).is_none(), "nothing would run");
}

#[test]
fn what_the_user_gives_stands_before_what_pgbench_gives() {
    let text = "SELECT ':scale', ':client_id', ':random_seed', ':mine'";
    let given = [("scale", "3"), ("mine", "x; y"), ("client_id", "9")];
    let sent = |given: &[(&str, &str)]| statement(&mut mix(&[(text, 1)], given).unwrap().client(1, 2, 42, 7));
    assert_eq!(sent(&[]), "SELECT '7', '1', '42', ':mine'");
    assert_eq!(sent(&given), "SELECT '3', '9', '42', 'x; y'");
    let lacks = |text: &str, given: &[(&str, &str)]| mix(&[(text, 1)], given).unwrap().lacks("scale");
    assert!(!lacks(text, &given) && !lacks("SELECT 1::scale, ':scales'", &[]));
    for uses in [text, "\\set x 2 * :scale + 1\nSELECT 1", "\\if :scale > 1\nSELECT 1;\\endif\n", "\\sleep :scale ms"] {
        assert!(lacks(uses, &[]), "{uses}");
    }
}

#[test]
fn a_command_is_found_by_line_and_column() {
    let text = "-- first\n\nSELECT 1;\n  SELECT 2 \\;\n SELECT 3 \\gset\n\\if false\nSELECT 4;\n\\else\n  \\set x :nosuch\n\\endif\n";
    let mut client = mix(&[(text, 1)], &[]).unwrap().client(0, 1, 42, 1);
    client.choose();
    let mut places = Vec::new();
    while let Ok(event) = client.advance() {
        assert_ne!(event, Event::End);
        places.push(client.place());
    }
    places.push(client.place());
    assert_eq!(places, ["s0:3:1", "s0:4:3", "s0:9:3"]);
}
