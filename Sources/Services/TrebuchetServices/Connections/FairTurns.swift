internal import Platform
internal import Trebuchet
internal import TrebuchetActors
internal import Transports

/// Shares the time of one reactor between callers whose work takes many slices, fairly by the time that they use, however many
/// calls and actors a caller uses.
///
/// A turn of the reactor spends about one time slice on this work. The rest waits here and not in the queue of the reactor, so
/// calls that take no slices wait for one slice at most.
///
/// Only on its reactor.
final class FairTurns: EndOfTurnTask {
    fileprivate typealias Queue = FairQueue<CallerConnection, CallerHost, SuspendedTask>

    /// The work of one call in slices.
    struct Work {
        /// The caller; nil for the server.
        private let connection: CallerConnection?
        /// The network of its host.
        private let network: CallerHost?
        /// The object of shared work, which belongs to no caller.
        private let shared: ObjectIdentifier?
        /// The place in the order of the caller's work; nil before the first slice.
        fileprivate var number: UInt64?
        /// True when the estimated time of its slice was counted.
        fileprivate var isEstimated = false

        init(_ connection: CallerConnection?) {
            (self.connection, network, shared) = (connection, connection?.host?.network, nil)
        }

        /// Work that callers wait for, whoever has caused it. It must not wait in the share of one of them.
        init(sharedBy object: AnyObject) { (connection, network, shared) = (nil, nil, ObjectIdentifier(object)) }

        fileprivate var caller: Queue.Caller {
            if let shared {
                Queue.Caller(network: nil, member: .shared(shared))
            } else {
                FairTurns.caller(connection, network)
            }
        }
    }

    /// The maximum number of calls that are resumed for one turn.
    private static let maximumResumed: UInt64 = 8
    /// The time in nanoseconds that counts for a resumed call until its slice ends.
    private static let estimate = Int(ScanSlice.duration / maximumResumed)
    /// A first slice of this time in nanoseconds does not count; the second one for each write or change.
    private static let (freeTime, freeTimeOfItem): (UInt64, UInt64) = (50_000, 25_000)

    private let reactor: any EventLoop
    /// Suspends tasks of actors on the reactor.
    let tasks: TaskSuspender
    private var queue = Queue()
    private var lastNumber: UInt64 = 0
    /// The time that slices have used in this turn, in nanoseconds.
    private var used: UInt64 = 0
    /// True when a resumed call has had a slice in this turn.
    private var hasResumed = false
    /// The number of resumed calls whose slice has not begun.
    private var resumed = 0
    /// The average time of a slice in nanoseconds.
    private var average = ScanSlice.duration
    private var isRegistered = false
    /// The end of the last slice that counted, or of the last wait.
    private var lastUse: UInt64
    private var threadTime = ThreadTime()
    /// The number of slices whose time was counted; for tests.
    private(set) var sliceCount = 0

    init(_ reactor: any EventLoop, at now: UInt64 = MonotonicClock.now) {
        self.reactor = reactor
        lastUse = now
        tasks = TaskSuspender(reactor)
    }

    /// Returns the turns of each reactor of a system.
    static func ofReactors(_ system: TrebuchetActorSystem) -> [ObjectIdentifier: LoopBound<FairTurns>] {
        let all = system.shards.map {
            (ObjectIdentifier($0.reactor), LoopBound(passing: FairTurns($0.reactor), to: $0.reactor))
        }
        return Dictionary(all) { $1 }
    }

    /// The number of waiting calls of one network, or of one loopback caller, above which its further reads are refused. A waiting
    /// call has 12 KB of memory.
    private static let maximumWaiting = 512

    /// Returns whether a read of a caller may wait for its turn.
    func admitsRead(of connection: CallerConnection) -> Bool {
        let waiting = queue.waitingCounts(of: Self.caller(connection, connection.host?.network))
        // A caller without waiting calls is admitted: others of its network must not use up its place.
        return waiting.caller == 0 || waiting.network < Self.maximumWaiting
    }

    /// Returns whether the first slice of work may begin at once.
    func mayBegin(_ work: Work) -> Bool {
        guard used < ScanSlice.duration else { return false }
        return queue.isEmpty && resumed == 0 || !mustWait(work)
    }

    /// Returns whether calls of the caller wait, or it has used more than others.
    func mustWait(_ work: Work) -> Bool { queue.mustWait(work.caller) }

    /// Returns when the work may use a time slice: at once for the first one if possible.
    func waitForSlice(_ work: inout Work, isolation: isolated (any Actor)? = #isolation) async {
        let isFirst = work.number == nil
        if isFirst {
            lastNumber += 1
            work.number = lastNumber
            if mayBegin(work) { return }
        }
        let (caller, number) = (work.caller, work.number ?? 0)
        while true {
            await tasks.suspend {
                self.settle(until: MonotonicClock.now)
                self.queue.insert($0, number: number, of: caller)
                self.register()
            }
            resumed -= 1
            // Others may wait, even if this call uses no time.
            register()
            guard hasResumed, used >= ScanSlice.duration else { break }
            // It has waited until now.
            lastUse = MonotonicClock.now
            queue.charge(-Self.estimate, to: caller)
        }
        (hasResumed, work.isEstimated) = (true, true)
    }

    /// Counts the time of a slice that ends now, without the time in which other threads had the processor.
    func charge(_ elapsed: UInt64, to work: inout Work) {
        charge(min(elapsed, threadTime.sinceLastReading()), within: elapsed, to: &work, at: MonotonicClock.now)
    }

    /// Counts the time of a slice that ends now.
    ///
    /// - Parameters:
    ///   - nanoseconds: the processor time.
    ///   - elapsed: the time since its begin.
    func charge(_ nanoseconds: UInt64, within elapsed: UInt64, to work: inout Work, at now: UInt64) {
        settle(until: now &- elapsed)
        lastUse = now
        sliceCount += 1
        used += nanoseconds
        average = (7 * average + nanoseconds) / 8
        register()
        let estimate = work.isEstimated ? Self.estimate : 0
        work.isEstimated = false
        queue.charge(Int(nanoseconds) - estimate, to: work.caller)
    }

    /// Counts the time of shared work for the callers that have caused it, in equal parts.
    ///
    /// - Parameter connections: each as often as it has caused work; nil is the server.
    func charge(_ nanoseconds: UInt64, toAll connections: [CallerConnection?]) {
        let part = Int(nanoseconds) / max(1, connections.count)
        for connection in connections {
            queue.charge(part, to: Self.caller(connection, connection?.host?.network))
        }
    }

    /// Counts the time of a first slice that began at once, unless its items explain it.
    ///
    /// - Parameter items: the number of writes or changes.
    /// - Returns: true when it counts.
    @discardableResult
    func chargeFirst(_ nanoseconds: UInt64, to work: inout Work, items: Int) -> Bool {
        guard nanoseconds > Self.freeTime + Self.freeTimeOfItem * UInt64(items) else { return false }
        charge(nanoseconds, to: &work)
        return true
    }

    /// Reduces debts by the time until `time` in which no slice was used and no call waited.
    private func settle(until time: UInt64) {
        guard queue.isEmpty, resumed == 0, time > lastUse else { return }
        queue.settle(Int(clamping: time - lastUse))
        lastUse = time
    }

    private static func caller(_ connection: CallerConnection?, _ network: CallerHost?) -> Queue.Caller {
        let member = connection.map { connection in
            connection.principal.map { Queue.Member.principal(ByteText($0.id)) } ?? .connection(connection)
        }
        return Queue.Caller(network: network, member: member)
    }

    private func register() {
        guard !isRegistered else { return }
        isRegistered = true
        reactor.atEndOfTurn(self)
    }

    /// Resumes the next calls, as many as have probably time in the next turn.
    func endOfTurn() {
        (isRegistered, used, hasResumed) = (false, 0, false)
        guard !queue.isEmpty else { return }
        let most = min(max(1, ScanSlice.duration / max(1, average)), Self.maximumResumed)
        while resumed < most, let next = queue.removeFirst(charging: Self.estimate) {
            resumed += 1
            next.run()
        }
    }
}
