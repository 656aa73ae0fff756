internal import Glibc
internal import Platform
internal import Synchronization

/// A thread that detects stalled reactors: one for the process, started with the first reactor.
///
/// It checks every 25 ms while a reactor works, and sleeps when all of them have been idle for a second. The first reactor that
/// wakes wakes it.
final class Watchdog: Sendable {
    static let shared = Watchdog()

    /// The interval of the checks in nanoseconds.
    private static let interval: UInt64 = 25_000_000
    /// The duration in nanoseconds above which a turn counts as stalled.
    private static let longestTurn: UInt64 = 100_000_000
    /// The number of checks without change before it sleeps.
    private static let checksBeforeSleep = 40

    /// The last observed progress of a reactor.
    private struct LastProgress {
        let reactor: Reactor
        var pulse: UInt64
        var since: UInt64
        /// The activity that was reported.
        var reportedActivity: String?
    }

    private let added = Mutex<(reactors: [Reactor], isStarted: Bool)>(([], false))
    let isSleeping = Atomic<Bool>(false)
    private let wakeSignal = ThreadSemaphore()

    func watch(_ reactor: Reactor) {
        let mustStart = added.withLock { added in
            added.reactors.append(reactor)
            defer { added.isStarted = true }
            return !added.isStarted
        }
        if mustStart { startThread(named: "watchdog") { self.loop() } }
    }

    /// Called when a reactor starts a turn. Its pulse is stored before, sequentially consistent with the flag that is read here.
    /// So either the reactor sees that the watchdog sleeps, or the watchdog sees the pulse.
    @inline(__always)
    func turnDidStart() {
        if isSleeping.load(ordering: .sequentiallyConsistent) { wake() }
    }

    @inline(never)
    private func wake() {
        if isSleeping.exchange(false, ordering: .sequentiallyConsistent) { wakeSignal.signal() }
    }

    private func loop() {
        var seen: [LastProgress] = []
        var quietChecks = 0
        while true {
            var time = timespec(tv_sec: 0, tv_nsec: Int(Self.interval))
            nanosleep(&time, nil)
            let isQuiet = checkProgress(&seen)
            quietChecks = isQuiet ? quietChecks + 1 : 0
            guard quietChecks >= Self.checksBeforeSleep else { continue }
            quietChecks = 0
            isSleeping.store(true, ordering: .sequentiallyConsistent)
            if !checkProgress(&seen) { wake() }
            // The thread that ends the sleep signals once.
            wakeSignal.wait()
        }
    }

    /// Returns whether no reactor has made progress and all are idle.
    private func checkProgress(_ seen: inout [LastProgress]) -> Bool {
        let now = MonotonicClock.now
        let reactors = added.withLock { $0.reactors }
        for reactor in reactors[seen.count...] { seen.append(LastProgress(reactor: reactor, pulse: 0, since: now)) }
        var isQuiet = true
        for index in seen.indices {
            let reactor = seen[index].reactor
            let pulse = reactor.pulse.load(ordering: .sequentiallyConsistent)
            let milliseconds = Int((now - seen[index].since) / 1_000_000)
            if pulse != seen[index].pulse {
                if let activity = seen[index].reportedActivity {
                    reactor.reportStall(
                        ReactorStall(
                            reactor: reactor.name, activity: activity, milliseconds: milliseconds, isOver: true))
                }
                seen[index] = LastProgress(reactor: reactor, pulse: pulse, since: now)
                isQuiet = false
            } else if Reactor.isWorking(pulse) {
                isQuiet = false
                guard now - seen[index].since >= Self.longestTurn, seen[index].reportedActivity == nil else { continue }
                let activity = reactor.activityText
                seen[index].reportedActivity = activity
                reactor.reportStall(
                    ReactorStall(
                        reactor: reactor.name, activity: activity, milliseconds: milliseconds, isOver: false))
            }
        }
        return isQuiet
    }
}
