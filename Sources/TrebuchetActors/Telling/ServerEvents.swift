internal import Synchronization

/// Where a server says what happens, and who is told. Free when nobody listens: each place that has something to say asks first
/// whether somebody wants it, which reads one number.
package final class ServerEvents: Sendable {
    private let wanted = Atomic<UInt32>(0)
    private let listeners = Mutex<[(listener: any ServerListener, kinds: ServerEvent.Kinds)]>([])
    private let calls = Atomic<UInt64>(0)
    /// Which calls begin a trace that belong to none.
    package let sampling = TraceSampling()
    /// What is counted on other threads than those of reactors, and seldom.
    private let rare = Mutex<(refusals: [Int: UInt64], limits: [String: UInt64])>(([:], [:]))

    /// The call whose method runs now. Set only while somebody listens.
    @TaskLocal static var running: ToldCall?
    /// The call that runs now, by its number; 0 for none, and for tasks that it has begun once it is answered.
    package static var currentCall: UInt64 { running.map { $0.isOver ? 0 : $0.mark } ?? 0 }

    package init() {}

    /// Whether somebody wants to be told of one of these.
    @inline(__always)
    package func wants(_ kinds: ServerEvent.Kinds) -> Bool {
        wanted.load(ordering: .relaxed) & kinds.rawValue != 0
    }

    package func tell(_ event: ServerEvent) {
        let kind = event.kind
        guard wants(kind) else { return }
        // Told without the lock: who hears of one thing may add or remove a listener.
        for entry in listeners.withLock({ $0 }) where entry.kinds.contains(kind) { entry.listener.hear(event) }
    }

    package func add(_ listener: any ServerListener) {
        let kinds = listener.kinds
        listeners.withLock { listeners in
            guard !listeners.contains(where: { $0.listener === listener }) else { return }
            listeners.append((listener, kinds))
            wanted.store(Self.all(listeners), ordering: .relaxed)
        }
    }

    package func remove(_ listener: any ServerListener) {
        let removed = listeners.withLock { listeners in
            let removed = listeners.filter { $0.listener === listener }
            listeners.removeAll { $0.listener === listener }
            wanted.store(Self.all(listeners), ordering: .relaxed)
            return removed
        }
        // Freed without the lock.
        _ = removed
    }

    package func removeAll() {
        let removed = listeners.withLock { listeners in
            defer { listeners = [] }
            wanted.store(0, ordering: .relaxed)
            return listeners
        }
        _ = removed
    }

    private static func all(_ listeners: [(listener: any ServerListener, kinds: ServerEvent.Kinds)]) -> UInt32 {
        listeners.reduce(0) { $0 | $1.kinds.rawValue }
    }

    /// For a call that is told of.
    package func nextCall() -> UInt64 { calls.wrappingAdd(1, ordering: .relaxed).newValue }

    // MARK: Counting off the reactors

    /// Somebody was refused with a status of HTTP.
    package func countRefusal(status: Int) { rare.withLock { $0.refusals[status, default: 0] += 1 } }

    /// As `ShardCounts.countRefusal(by:)`, from anywhere.
    package func countRefusal(by limit: String) { rare.withLock { $0.limits[limit, default: 0] += 1 } }

    package var rareCounts: (refusals: [Int: UInt64], limits: [String: UInt64]) { rare.withLock { $0 } }
}

/// The calls that have a part in the next version of a state: each once, in the order in which they began to.
struct VersionCauses {
    private static let most = 1_000
    /// Calls that are told apart; of a version that still more have a part in, `more` may count some of them again.
    private static let mostKnown = 10_000
    /// So few are looked through one by one.
    private static let few = 16

    private(set) var calls: [UInt64] = []
    private(set) var more = 0
    /// Whether something else has a part in it than calls that were told of.
    private(set) var hasOthers = false
    private var hasChanged = false
    /// The one that came last, named or not.
    private var last: UInt64 = 0
    /// All of them, once there are more than a few.
    private var known: Set<UInt64> = []

    /// - Parameter call: 0 for none.
    mutating func note(_ call: UInt64) {
        hasChanged = true
        guard call != 0 else { return hasOthers = true }
        guard call != last else { return }
        last = call
        guard isNew(call) else { return }
        if calls.count < Self.most { calls.append(call) } else { more += 1 }
    }

    private mutating func isNew(_ call: UInt64) -> Bool {
        guard known.isEmpty else {
            return known.count < Self.mostKnown ? known.insert(call).inserted : !known.contains(call)
        }
        guard !calls.contains(call) else { return false }
        if calls.count == Self.few { known = Set(calls + [call]) }
        return true
    }

    /// What was noted since; nil when that is nothing.
    mutating func take() -> VersionCauses? {
        guard hasChanged else { return nil }
        defer { self = VersionCauses() }
        return self
    }
}
