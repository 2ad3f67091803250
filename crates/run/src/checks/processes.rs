//! Figures and checks of a test whose jobs ran in other processes, on agents: all of them counted, in one common window.

use std::collections::BTreeMap;

use loadline_model::format::counted;
use loadline_model::record::{AgentFigures, LinkUse, MOST_START_SKEW_MS};
use loadline_model::{CheckId, Detail};

use super::{MAX_CLIENT_CPU, NOTE_CLIENT_CPU};
use crate::evidence::Evidence;
use crate::test::{Test, Verdict, failed, not_made, noted, passed, require};

pub(crate) fn figures(e: &Evidence<'_>, test: &mut Test) {
    test.add(Detail::Agents, e.measured.elsewhere.processes.iter().map(AgentFigures::stored).collect());
}

pub(crate) fn windows(e: &Evidence<'_>, test: &mut Test) {
    test.check(CheckId::Agents, common_window(&e.measured.elsewhere.processes));
}

pub(crate) fn links(e: &Evidence<'_>, test: &mut Test) {
    test.check(CheckId::AgentsNetwork, network(&e.measured.elsewhere.processes));
}

fn common_window(agents: &[AgentFigures]) -> Option<Verdict> {
    let n = agents.iter().filter(|agent| agent.failed.is_some()).count();
    if n > 0 {
        let all = counted(agents.len(), "agent");
        return Some(failed(format!("{n} of {all} failed: {}", AgentFigures::failures(agents))));
    }
    let skew = |agent: &AgentFigures| agent.start_skew_ms.unwrap_or(f64::INFINITY);
    let worst = agents.iter().max_by(|a, b| skew(a).total_cmp(&skew(b)))?;
    let late: u32 = agents.iter().map(|agent| agent.late_starts).sum();
    let said = if late == 0 {
        String::new()
    } else {
        format!("; {} began after the window did", counted(late as usize, "job"))
    };
    let detail = format!(
        "{} had the common window to within {:.3} ms (the worst: {}; allowed: {MOST_START_SKEW_MS} ms){said}",
        counted(agents.len(), "agent"),
        skew(worst),
        worst.name
    );
    Some(require(skew(worst) <= MOST_START_SKEW_MS, detail))
}

fn network(agents: &[AgentFigures]) -> Option<Verdict> {
    let used: Vec<(&AgentFigures, &LinkUse)> = agents.iter().filter_map(|a| Some((a, a.network.as_ref()?))).collect();
    let said = |(agent, link): &(&AgentFigures, &LinkUse)| {
        let mib = link.bytes_per_s / f64::from(1 << 20);
        format!("{} of agent {} on {} carried {mib:.1} MiB/s", link.interface, agent.name, agent.host)
    };
    let pct = |of: &(&AgentFigures, &LinkUse)| of.1.pct.unwrap_or(0.0);
    let Some(worst) = used.iter().max_by(|a, b| pct(a).total_cmp(&pct(b))) else {
        let counted = agents.iter().any(|agent| agent.failed.is_none());
        return counted.then(|| passed("no network link carried anything"));
    };
    let detail = format!("{}, {:.0} % of its link's speed", said(worst), pct(worst));
    let unknown = used.iter().find(|(_, link)| link.pct.is_none());
    Some(match unknown {
        _ if pct(worst) >= MAX_CLIENT_CPU * 100.0 => {
            failed(format!("{detail}: the agent's network is the bottleneck, not the target"))
        }
        Some(unknown) => {
            not_made(format!("{}; the speed of its link is unknown (/sys/class/net/*/speed)", said(unknown)))
        }
        None if pct(worst) >= NOTE_CLIENT_CPU * 100.0 => {
            noted(format!("{detail}: with more agents the figures may be higher"))
        }
        None => passed(detail),
    })
}

fn by_machine<'a>(agents: &'a [AgentFigures], of: impl Fn(&[&'a AgentFigures]) -> Option<f64>) -> Vec<(String, f64)> {
    let mut machines: BTreeMap<(&str, &str), Vec<&AgentFigures>> = BTreeMap::new();
    for agent in agents {
        // A machine that has no id of its own is known by its name.
        let host = if agent.machine.is_empty() { agent.host.as_str() } else { "" };
        machines.entry((&agent.machine, host)).or_default().push(agent);
    }
    let named = machines.into_values().filter_map(|those| {
        let names: Vec<&str> = those.iter().map(|agent| agent.name.as_str()).collect();
        let names = match &names[..] {
            [one] => format!("agent {one}"),
            [first, .., last] if names.len() > 3 => format!("{} agents ({first} to {last})", names.len()),
            _ => format!("agents {}", names.join(", ")),
        };
        Some((names, of(&those)?))
    });
    named.collect()
}

/// The agents of the machine whose CPU they used most of, and that share (0…1). `None` without any, or if it is unknown of one.
pub(crate) fn busiest(agents: &[AgentFigures]) -> Option<(String, f64)> {
    let share = |those: &[&AgentFigures]| those.iter().map(|a| a.client_cpu_pct).sum::<Option<f64>>();
    if agents.iter().any(|agent| agent.client_cpu_pct.is_none()) {
        return None;
    }
    let machines = by_machine(agents, share).into_iter().map(|(names, pct)| (names, pct / 100.0));
    machines.max_by(|a, b| a.1.total_cmp(&b.1))
}

/// CPUs of all machines of agents. `None` without agents.
pub(crate) fn cpus(agents: &[AgentFigures]) -> Option<u32> {
    let most = |those: &[&AgentFigures]| those.iter().map(|agent| f64::from(agent.cpus)).reduce(f64::max);
    let machines = by_machine(agents, most);
    (!machines.is_empty()).then(|| machines.iter().map(|(_, cpus)| *cpus as u32).sum())
}

/// CPU time of all agents in the window, ns. `None` if it is unknown of one, or there are no agents.
pub(crate) fn cpu_ns(agents: &[AgentFigures], window_s: f64) -> Option<f64> {
    let ns = |agent: &AgentFigures| Some(agent.client_cpu_pct? / 100.0 * f64::from(agent.cpus) * window_s * 1e9);
    if agents.is_empty() { None } else { agents.iter().map(ns).sum() }
}

#[cfg(test)]
mod tests {
    use loadline_model::Outcome;

    use super::*;

    #[test]
    fn a_full_link_is_no_figure_of_the_target_and_an_unknown_one_proves_nothing() {
        let of = |pct: &[Option<f64>]| {
            let link = |pct| LinkUse { interface: "eth0".into(), bytes_per_s: 1e8, pct };
            let agent = |pct: &Option<f64>| AgentFigures { network: Some(link(*pct)), ..AgentFigures::default() };
            network(&pct.iter().map(agent).collect::<Vec<_>>()).unwrap().outcome
        };
        assert_eq!([of(&[Some(3.0), Some(90.0)]), of(&[None, Some(90.0)])], [Outcome::Failed; 2]);
        assert_eq!([of(&[Some(30.0)]), of(&[Some(3.0)])], [Outcome::Noted, Outcome::Passed]);
        assert_eq!(of(&[Some(3.0), None]), Outcome::NotMade);
        assert_eq!(network(&[AgentFigures::default()]).unwrap().outcome, Outcome::Passed, "all on the loopback");
        assert!(network(&[]).is_none());
    }

    #[test]
    fn agents_of_one_machine_share_its_cpus() {
        let of = |name: &str, machine: &str, pct| AgentFigures {
            name: name.into(),
            machine: machine.into(),
            host: format!("container of {name}"),
            cpus: 4,
            client_cpu_pct: Some(pct),
            ..AgentFigures::default()
        };
        let mut agents = vec![of("a1", "m1", 30.0), of("a2", "m2", 50.0), of("a3", "m1", 40.0)];
        let (who, share) = busiest(&agents).unwrap();
        assert!(who == "agents a1, a3" && (share - 0.7).abs() < 1e-9, "{who} {share}");
        assert_eq!((cpus(&agents), cpus(&[])), (Some(8), None));
        // 1.2 of 4 CPUs, 2 and 1.6 of them, for 10 s.
        assert!((cpu_ns(&agents, 10.0).unwrap() - 48e9).abs() < 1.0);
        agents[1].client_cpu_pct = None;
        assert!(busiest(&agents).is_none() && cpu_ns(&agents, 10.0).is_none(), "unknown is not 0");
    }
}
