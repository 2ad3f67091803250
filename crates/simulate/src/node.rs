//! One node: its jobs in a closed loop, its CPUs, its redo buffer, its log writer, its device, its standby.
//!
//! ```text
//! job      [network] - CPU - (client: wake-up - CPU) - redo buffer - commit -+- nobody writes: it is the writer
//!                                                                            +- else it waits for the next group
//! writer   [delay] - takes all that wait - CPU of the sync - device - CPU: chooses the next writer, wakes the others in turn
//! standby  gets a group beside or after its local write, writes all that has arrived at once, answers
//! ```

use std::collections::VecDeque;

use crate::cpus::Cpus;
use crate::draw::Draw;
use crate::events::{Event, Events, us};
use crate::gather::{Gather, Plan};
use crate::platform::{Platform, Way};

/// What a job needs a CPU for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Task {
    /// It begins its next transaction.
    Begin,
    /// The session has the statement of a client.
    Statement,
    /// The redo buffer has space again.
    Append,
    /// The session has slept until its commit was durable, and answers its client.
    Answer,
    /// It was chosen to write the next group.
    Lead,
    /// It submits the write.
    Submit,
    /// Its write is done: it wakes the others.
    Finish,
}

#[derive(Debug, Clone, Copy)]
struct Job {
    task: Task,
    /// Whether it has slept, or waited for a CPU, since it last ran.
    slept: bool,
    group: u32,
    /// When its transaction began, ticks.
    began: u64,
    /// When its last commit was durable here, ticks; 0: it has made none.
    released: u64,
}

/// Jobs whose commits are written together.
#[derive(Debug, Default)]
struct Group {
    members: Vec<u32>,
    writer: u32,
    /// Members that the writer has woken.
    woken: usize,
    /// Whether the writer itself waits for the standby.
    waits: bool,
    /// When its write began, ticks.
    began: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Log {
    Idle,
    /// The next write waits for jobs just woken.
    Gathering(Plan),
    Writing,
}

/// Counts since the simulation began.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    /// Time, µs.
    pub(crate) at_us: f64,
    /// Transactions that ended.
    pub(crate) commits: u64,
    /// Sum of their times, µs.
    pub(crate) latency_us: f64,
    /// Groups written.
    pub(crate) groups: u64,
    /// Commits in them.
    pub(crate) grouped: u64,
    /// CPU time used, µs.
    pub(crate) cpu_us: f64,
}

pub(crate) struct Node<'a> {
    p: &'a Platform,
    draw: Draw,
    events: Events,
    cpus: Cpus,
    jobs: Vec<Job>,
    groups: Vec<Group>,
    unused: Vec<u32>,
    log: Log,
    /// Number of the newest plan to gather: older deadlines are void.
    gathering: u32,
    gather: Gather,
    /// Jobs that wait for the next write.
    waiting: VecDeque<u32>,
    /// Jobs that wait for space in the redo buffer.
    full: VecDeque<u32>,
    free_bytes: f64,
    standby_busy: bool,
    standby_has: Vec<u32>,
    standby_writes: Vec<u32>,
    counts: Counts,
}

impl<'a> Node<'a> {
    pub(crate) fn new(p: &'a Platform, jobs: u32, seed: u64) -> Node<'a> {
        let job = Job { task: Task::Begin, slept: false, group: 0, began: 0, released: 0 };
        let mut node = Node {
            p,
            draw: Draw::new(seed),
            events: Events::default(),
            cpus: Cpus::new(p.cpus),
            jobs: vec![job; jobs as usize],
            groups: Vec::new(),
            unused: Vec::new(),
            log: Log::Idle,
            gathering: 0,
            gather: Gather::new(p.gather),
            waiting: VecDeque::new(),
            full: VecDeque::new(),
            free_bytes: p.buffer_bytes.map_or(f64::INFINITY, |bytes| bytes.max(p.redo_bytes)),
            standby_busy: false,
            standby_has: Vec::new(),
            standby_writes: Vec::new(),
            counts: Counts::default(),
        };
        // Jobs start one after the other, within the time of a transaction.
        let within = p.cpu_us + p.away_us + p.device.sync_us;
        for job in 0..jobs {
            let at = node.draw.unit() * within;
            node.events.after(at, Event::Back(job));
        }
        node
    }

    /// Runs until `commits` transactions have ended. Returns the counts then.
    pub(crate) fn run_to(&mut self, commits: u64) -> Counts {
        while self.counts.commits < commits {
            // Jobs never end, so there always is an event.
            let Some(event) = self.events.next() else { break };
            self.on(event);
        }
        self.counts.at_us = us(self.events.now());
        self.counts
    }

    fn on(&mut self, event: Event) {
        match event {
            Event::Back(job) => self.need_cpu(job, Task::Begin, true),
            Event::Ran(job) => self.ran(job),
            Event::Written(group) => self.written(group),
            Event::Wake(group) => self.wake_next(group),
            Event::Patience(number) => {
                // The first to wait keeps the time. If nobody waits, the next to commit writes.
                if number == self.gathering
                    && matches!(self.log, Log::Gathering(_))
                    && let Some(first) = self.waiting.pop_front()
                {
                    self.stop_gathering();
                    self.begin_write(first, true);
                }
            }
            Event::Delayed(job) => self.need_cpu(job, Task::Lead, true),
            Event::AtStandby(group) => {
                self.standby_has.push(group);
                self.standby_write();
            }
            Event::StandbyWrote => self.standby_wrote(),
            Event::Acknowledged(group) => self.wake_next(group),
        }
    }

    // CPUs

    /// `job` is ready to run; it was asleep if `woken`.
    fn need_cpu(&mut self, job: u32, task: Task, woken: bool) {
        let urgent = matches!(task, Task::Lead | Task::Submit | Task::Finish);
        let it = &mut self.jobs[job as usize];
        (it.task, it.slept) = (task, true);
        if self.cpus.take(job, urgent) {
            let wake = if woken { self.p.wake_us } else { 0.0 };
            self.run(job, wake);
        }
    }

    /// `job` has a CPU, which it gets after `wake` µs.
    fn run(&mut self, job: u32, wake: f64) {
        let now = self.events.now();
        let Job { task, slept, .. } = self.jobs[job as usize];
        // What its sleep cost the writer is part of the sync, as it was measured.
        let switch = if slept && task != Task::Finish { self.p.switch_us } else { 0.0 };
        let mut hand = 0.0;
        let cpu = match task {
            Task::Begin => {
                self.ended(job, now);
                // A client and its session share the work.
                self.cpu_time(if self.p.client { 0.5 } else { 1.0 })
            }
            Task::Statement => self.cpu_time(0.5),
            Task::Append | Task::Answer | Task::Lead => 0.0,
            Task::Submit => self.p.device.cpu_us.min(self.p.device.sync_us),
            Task::Finish => {
                let group = self.jobs[job as usize].group;
                hand = self.finish(group);
                0.0
            }
        };
        self.counts.cpu_us += cpu + switch + hand;
        self.events.after(cpu + switch + hand + wake, Event::Ran(job));
    }

    fn cpu_time(&mut self, share: f64) -> f64 {
        self.draw.time(self.p.cpu_us * share, self.p.cpu_spread)
    }

    /// `job` goes on with `task` on the CPU that it has.
    fn go_on(&mut self, job: u32, task: Task) {
        let it = &mut self.jobs[job as usize];
        (it.task, it.slept) = (task, false);
        self.run(job, 0.0);
    }

    /// The CPU of a job that stops running goes to the next one.
    fn free_cpu(&mut self) {
        if let Some(next) = self.cpus.give() {
            self.run(next, 0.0);
        }
    }

    fn ran(&mut self, job: u32) {
        match self.jobs[job as usize].task {
            Task::Begin if self.p.client => {
                self.need_cpu(job, Task::Statement, true);
                self.free_cpu();
            }
            Task::Begin | Task::Statement | Task::Append => self.commit(job),
            Task::Answer => self.next_transaction(job, true),
            Task::Lead => self.submit(job),
            Task::Submit => self.submitted(job),
            Task::Finish => {
                let group = self.jobs[job as usize].group;
                if self.groups[group as usize].waits { self.free_cpu() } else { self.next_transaction(job, true) }
            }
        }
    }

    /// The transaction of `job` has ended; it has a CPU if `running`.
    fn next_transaction(&mut self, job: u32, running: bool) {
        if self.p.away_us > 0.0 {
            let away = self.draw.time(self.p.away_us, self.p.cpu_spread);
            self.events.after(away, Event::Back(job));
        } else if running && !self.p.client {
            return self.go_on(job, Task::Begin);
        } else {
            self.need_cpu(job, Task::Begin, true);
        }
        if running {
            self.free_cpu();
        }
    }

    /// A transaction of `job` ended and the next one begins.
    fn ended(&mut self, job: u32, now: u64) {
        let it = &mut self.jobs[job as usize];
        if it.released > 0 {
            self.counts.commits += 1;
            self.counts.latency_us += us(now - it.began);
        }
        it.began = now;
    }

    // Redo buffer and log

    /// `job`, which runs, appends its redo and commits.
    fn commit(&mut self, job: u32) {
        if self.free_bytes < self.p.redo_bytes {
            self.full.push_back(job);
            return self.free_cpu();
        }
        self.free_bytes -= self.p.redo_bytes;
        let now = self.events.now();
        let released = self.jobs[job as usize].released;
        if released > 0 {
            self.gather.came_back(now - released);
        }
        match self.log {
            Log::Idle => self.lead(job),
            Log::Gathering(plan) if self.waiting.len() + 1 >= plan.goal || now >= plan.deadline_ns => {
                self.stop_gathering();
                self.lead(job);
            }
            Log::Gathering(_) | Log::Writing => {
                self.waiting.push_back(job);
                self.free_cpu();
            }
        }
    }

    /// A delayed write starts, with the commits that wait and that of its writer.
    fn stop_gathering(&mut self) {
        if let Log::Gathering(plan) = self.log {
            self.gather.went(plan, self.waiting.len() + 1);
        }
    }

    /// `job`, which runs, writes the next group.
    fn lead(&mut self, job: u32) {
        self.log = Log::Writing;
        if self.delays() {
            self.events.after(self.p.delay_us, Event::Delayed(job));
            self.free_cpu();
        } else {
            self.submit(job);
        }
    }

    fn delays(&self) -> bool {
        self.p.delay_us > 0.0 && self.jobs.len() > self.p.siblings as usize
    }

    /// `job`, which sleeps, is to write the next group.
    fn begin_write(&mut self, job: u32, woken: bool) {
        self.log = Log::Writing;
        if self.delays() {
            self.events.after(self.p.delay_us, Event::Delayed(job));
        } else {
            self.need_cpu(job, Task::Lead, woken);
        }
    }

    /// `job` takes all that wait as its group and submits the write.
    fn submit(&mut self, job: u32) {
        let group = self.unused.pop().unwrap_or_else(|| {
            self.groups.push(Group::default());
            self.groups.len() as u32 - 1
        });
        let it = &mut self.groups[group as usize];
        (it.writer, it.woken, it.waits, it.began) = (job, 0, false, self.events.now());
        it.members.clear();
        it.members.extend(self.waiting.drain(..));
        self.jobs[job as usize].group = group;
        self.counts.groups += 1;
        self.counts.grouped += it.members.len() as u64 + 1;
        self.go_on(job, Task::Submit);
    }

    fn bytes(&self, group: u32) -> f64 {
        (self.groups[group as usize].members.len() as f64 + 1.0) * self.p.redo_bytes
    }

    /// The write of the group of `job` is submitted: the device works.
    fn submitted(&mut self, job: u32) {
        let group = self.jobs[job as usize].group;
        let device = self.p.device;
        let bytes = self.bytes(group) * device.us_per_byte;
        let sync = self.draw.time(device.sync_us, device.spread);
        let mut busy = (sync - device.cpu_us).max(0.0) + bytes;
        if let Some(standby) = self.p.standby.filter(|s| s.way == Way::Beside) {
            let there = if standby.written { self.draw.time(device.sync_us, device.spread) + bytes } else { 0.0 };
            busy = busy.max(standby.rtt_us + self.on_the_way() + there);
        }
        if busy > 0.0 {
            self.events.after(busy, Event::Written(group));
            self.free_cpu();
        } else {
            // A device in memory: the writer goes on.
            self.go_on(job, Task::Finish);
        }
    }

    /// The device has written `group`: its writer runs again. The time of that is part of the device's, as it was measured.
    fn written(&mut self, group: u32) {
        let writer = self.groups[group as usize].writer;
        self.need_cpu(writer, Task::Finish, false);
    }

    /// The writer of `group` runs again: the buffer is free, the next writer is chosen. Returns the writer's CPU time.
    fn finish(&mut self, group: u32) -> f64 {
        let now = self.events.now();
        self.free_bytes += self.bytes(group);
        let Group { writer, began, .. } = self.groups[group as usize];
        self.gather.wrote(now - began);
        let after = self.p.standby.filter(|s| s.way == Way::After);
        let served = self.groups[group as usize].members.len();
        self.groups[group as usize].waits = after.is_some();
        let it = &self.groups[group as usize];
        for job in it.members.iter().chain([&writer]) {
            self.jobs[*job as usize].released = now.max(1);
        }
        let next = self.choose_next(served + 1, now);
        let woken = if after.is_some() { 0 } else { served };
        let cpu = self.p.hand_us * (woken + usize::from(next)) as f64;
        if let Some(standby) = after {
            // The writer sends it once it has chosen the next one.
            self.events.after(cpu + standby.rtt_us / 2.0 + self.on_the_way(), Event::AtStandby(group));
        } else if served > 0 {
            self.events.after(self.p.hand_us, Event::Wake(group));
        } else {
            self.unused.push(group);
        }
        self.admit();
        cpu
    }

    /// Whether another job was woken to write.
    fn choose_next(&mut self, released: usize, now: u64) -> bool {
        // A job that waits for space in the buffer writes it at once.
        if self.full.is_empty()
            && let Some(plan) = self.gather.plan(released, self.waiting.len(), now)
        {
            self.log = Log::Gathering(plan);
            self.gathering = self.gathering.wrapping_add(1);
            let patience = us(plan.deadline_ns.saturating_sub(now));
            self.events.after(patience, Event::Patience(self.gathering));
            return false;
        }
        match self.waiting.pop_front() {
            Some(next) => {
                self.begin_write(next, true);
                true
            }
            None => {
                self.log = Log::Idle;
                false
            }
        }
    }

    /// Jobs that waited for space in the buffer run again, as many as fit.
    fn admit(&mut self) {
        let mut fit = self.free_bytes;
        while fit >= self.p.redo_bytes
            && let Some(job) = self.full.pop_front()
        {
            fit -= self.p.redo_bytes;
            self.need_cpu(job, Task::Append, true);
        }
    }

    /// Wakes the next job of `group`.
    fn wake_next(&mut self, group: u32) {
        let it = &mut self.groups[group as usize];
        let after_standby = it.waits;
        let job = match it.members.get(it.woken) {
            Some(job) => *job,
            None if after_standby => it.writer,
            None => return,
        };
        it.woken += 1;
        let more = it.woken < it.members.len() + usize::from(after_standby);
        if more {
            self.events.after(self.p.hand_us, Event::Wake(group));
        } else {
            self.unused.push(group);
        }
        if self.p.client { self.need_cpu(job, Task::Answer, true) } else { self.next_transaction(job, false) }
    }

    // Standby

    /// Time that wake-ups take on the way to the standby and back: of what sends, what receives, and what takes the answer.
    fn on_the_way(&self) -> f64 {
        3.0 * (self.p.wake_us + self.p.switch_us)
    }

    /// The standby writes all that has arrived, unless it writes.
    fn standby_write(&mut self) {
        if self.standby_busy || self.standby_has.is_empty() {
            return;
        }
        self.standby_busy = true;
        std::mem::swap(&mut self.standby_has, &mut self.standby_writes);
        let device = self.p.device;
        let written = self.p.standby.is_some_and(|s| s.written);
        let bytes: f64 = self.standby_writes.iter().map(|g| self.bytes(*g)).sum();
        let time = self.draw.time(device.sync_us, device.spread) + bytes * device.us_per_byte;
        self.events.after(if written { time } else { 0.0 }, Event::StandbyWrote);
    }

    fn standby_wrote(&mut self) {
        self.standby_busy = false;
        let back = self.p.standby.map_or(0.0, |s| s.rtt_us / 2.0);
        for group in self.standby_writes.drain(..) {
            self.events.after(back, Event::Acknowledged(group));
        }
        self.standby_write();
    }
}
