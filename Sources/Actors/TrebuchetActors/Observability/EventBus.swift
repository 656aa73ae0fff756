internal import Synchronization

/// The event bus of a server, which delivers events to its handlers. Without handlers it costs one read: a producer first
/// checks whether a handler receives the kind.
package final class EventBus: Sendable {
    /// The handler that writes the log; nil without one.
    private let log: (any ServerEventHandler)?
    private let interestMask = Atomic<UInt32>(0)
    private let listeners = Mutex<[(listener: any ServerEventHandler, kinds: ServerEvent.Kinds)]>([])
    private let calls = Atomic<UInt64>(0)
    /// The sampling of calls without a trace.
    package let sampling = TraceSampling()
    /// Counters of rare events on threads other than those of reactors.
    private let rejections = Mutex<(refusals: [Int: UInt64], limits: [String: UInt64])>(([:], [:]))
    /// The responses to HTTP requests that make calls or run a route, by status.
    private let httpRequests = Mutex<[Int: UInt64]>([:])

    /// The call whose method runs now. Set only while an event handler exists.
    @TaskLocal static var running: ObservedCall?
    /// The number of the running call; 0 without one, and in tasks that outlive their call.
    package static var currentCall: UInt64 { running.map { $0.isOver ? 0 : $0.mark } ?? 0 }

    /// - Parameter log: the handler that writes the log, which `removeHandlersExceptLog` leaves; none by default.
    package init(log: (any ServerEventHandler)? = nil) {
        self.log = log
        if let log { addHandler(log) }
    }

    /// Returns whether an event handler receives one of these kinds.
    @inline(__always)
    package func isEnabled(for kinds: ServerEvent.Kinds) -> Bool {
        interestMask.load(ordering: .relaxed) & kinds.rawValue != 0
    }

    package func emit(_ event: ServerEvent) {
        let kind = event.kind
        guard isEnabled(for: kind) else { return }
        // Called without the lock, because a handler may add or remove handlers.
        for entry in listeners.withLock({ $0 }) where entry.kinds.contains(kind) { entry.listener.handle(event) }
    }

    package func addHandler(_ listener: any ServerEventHandler) {
        let kinds = listener.kinds
        listeners.withLock { listeners in
            guard !listeners.contains(where: { $0.listener === listener }) else { return }
            listeners.append((listener, kinds))
            interestMask.store(Self.all(listeners), ordering: .relaxed)
        }
    }

    package func removeHandler(_ listener: any ServerEventHandler) {
        let removed = listeners.withLock { listeners in
            let removed = listeners.filter { $0.listener === listener }
            listeners.removeAll { $0.listener === listener }
            interestMask.store(Self.all(listeners), ordering: .relaxed)
            return removed
        }
        // Freed without the lock.
        _ = removed
    }

    /// Removes the handlers of a server that has shut down. The log still receives the lines that follow.
    package func removeHandlersExceptLog() {
        let removed = listeners.withLock { listeners in
            let removed = listeners.filter { $0.listener !== log }
            listeners.removeAll { $0.listener !== log }
            interestMask.store(Self.all(listeners), ordering: .relaxed)
            return removed
        }
        // Freed without the lock.
        _ = removed
    }

    private static func all(_ listeners: [(listener: any ServerEventHandler, kinds: ServerEvent.Kinds)]) -> UInt32 {
        listeners.reduce(0) { $0 | $1.kinds.rawValue }
    }

    /// Returns the number of the next observed call.
    package func nextCallNumber() -> UInt64 { calls.wrappingAdd(1, ordering: .relaxed).newValue }

    // MARK: Counting off the reactors

    /// Counts a rejection with an HTTP status.
    package func countRejection(status: Int) { rejections.withLock { $0.refusals[status, default: 0] += 1 } }

    /// Counts a rejection by a limit, like `ShardMetrics.countRefusal(by:)`, on any thread.
    package func countRejection(limit: String) { rejections.withLock { $0.limits[limit, default: 0] += 1 } }

    /// Counts the response to an HTTP request that makes a call or runs a route.
    package func countHTTPRequest(status: Int) { httpRequests.withLock { $0[status, default: 0] += 1 } }

    package var httpRequestCounts: [Int: UInt64] { httpRequests.withLock { $0 } }

    package var rejectionCounts: (refusals: [Int: UInt64], limits: [String: UInt64]) { rejections.withLock { $0 } }
}

/// The calls that have changed the next version of a state: each once, in the order of their first change.
struct VersionCauses {
    private static let most = 1_000
    /// The number of calls that are distinguished. If still more calls change a version, `more` may count some of them twice.
    private static let maximumKnownEntries = 10_000
    /// The number of calls up to which the array is searched.
    private static let few = 16

    private(set) var calls: [UInt64] = []
    private(set) var more = 0
    /// Set if the version contains changes with other causes than observed calls.
    private(set) var hasOthers = false
    private var hasChanged = false
    /// The last call, named or not.
    private var last: UInt64 = 0
    /// All calls, once there are more than `few`.
    private var known: Set<UInt64> = []

    /// Records a change.
    ///
    /// - Parameter call: the number of the call, 0 for none.
    mutating func recordCall(_ call: UInt64) {
        hasChanged = true
        guard call != 0 else { return hasOthers = true }
        guard call != last else { return }
        last = call
        guard isNew(call) else { return }
        if calls.count < Self.most { calls.append(call) } else { more += 1 }
    }

    private mutating func isNew(_ call: UInt64) -> Bool {
        guard known.isEmpty else {
            return known.count < Self.maximumKnownEntries ? known.insert(call).inserted : !known.contains(call)
        }
        guard !calls.contains(call) else { return false }
        if calls.count == Self.few { known = Set(calls + [call]) }
        return true
    }

    /// Returns the causes recorded since the last call of this method; nil if nothing has changed.
    mutating func takeRecorded() -> VersionCauses? {
        guard hasChanged else { return nil }
        defer { self = VersionCauses() }
        return self
    }
}
