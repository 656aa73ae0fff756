internal import Bytes

/// The last versions of a stream, each encoded once and leading on from the one before: where they are made, and with each
/// broadcaster. Who is behind, who comes back, the store and the next difference ask the same log.
///
/// Of a state whose newest value counts the differences are kept: at most 64, which is two turns' worth, and together no larger
/// than the value. Where none may be left out each version is: as many as was asked for, and 16 MiB of them if nothing else is said; the
/// newest one always. At most `StreamDelivery.mostBuffered` are asked for.
package struct VersionLog: Sendable {
    static let mostDifferences = 64
    /// Bytes that are kept where none may be left out, whatever their number, if nothing else is said.
    static let mostBytes = 16 << 20
    /// How many times the limit more are kept for those who come back, and how many bytes of these.
    static let returning = 8
    static let returningBytes = 1 << 20

    /// What the next one may be sent as the difference from.
    var newest: StateUpdate?
    /// Of the last version, or event, there ever was.
    private(set) var position: UInt64
    /// How many are kept where none may be left out; nil where differences are.
    private let limit: Int?
    private let byteLimit: Int
    /// Up to this version more are kept.
    private var returnsUntil: UInt64 = 0
    private var updates: [StateUpdate] = []
    /// How many at the front of `updates` are forgotten already: taken out in one go now and then.
    private var forgotten = 0
    private var bytes = 0
    private var forgottenBytes = 0

    /// - Parameters:
    ///   - limit: how many are kept where none may be left out; nil where the newest counts.
    ///   - position: of the last one before those that come.
    ///   - byteLimit: bytes of them that are kept where none may be left out.
    init(keepingEach limit: Int? = nil, position: UInt64 = 0, byteLimit: Int = Self.mostBytes) {
        self.limit = limit.map { StreamDelivery.room(for: $0) }
        self.position = position
        self.byteLimit = byteLimit
    }

    /// Whether none may be left out.
    var keepsEach: Bool { limit != nil }
    var count: Int { updates.count - forgotten }
    /// What is there, oldest first.
    var kept: ArraySlice<StateUpdate> { updates[forgotten...] }

    /// The stream goes on from an earlier life at another node: those who observed there come back when others have changed something
    /// here already. More is kept for them while that is new.
    mutating func expectReturns() {
        guard let limit else { return }
        returnsUntil = position &+ UInt64(limit * Self.returning)
    }

    /// Whether one more than is asked for stays.
    private func isForReturns(_ limit: Int) -> Bool {
        position <= returnsUntil && count <= limit * (1 + Self.returning) && bytes <= Self.returningBytes
    }

    mutating func append(_ update: StateUpdate) {
        newest = update
        if limit == nil, update.patch == nil { return begin(at: update.sequence) }
        if update.base != position { removeAll() }
        position = update.sequence
        // The value would be kept with each difference.
        let kept = limit == nil ? update.withoutWhole : update
        updates.append(kept)
        bytes += kept.storedBytes
        let most = limit ?? Self.mostDifferences
        let mostBytes = limit == nil ? update.wholeByteCount : byteLimit
        while count > most && !isForReturns(most) || bytes > mostBytes && count > (limit == nil ? 0 : 1) {
            bytes -= updates[forgotten].storedBytes
            forgottenBytes += updates[forgotten].storedBytes
            forgotten += 1
        }
        if forgotten > max(32, limit ?? 0) || forgottenBytes > byteLimit / 4 || limit == nil { dropForgotten() }
    }

    /// What leads from a version to the newest, oldest first; nil when some of it is forgotten.
    func updates(since sequence: UInt64) -> ArraySlice<StateUpdate>? {
        guard sequence < position else { return [] }
        // Nearly everybody is one behind.
        if let last = updates.last, last.base == sequence { return updates.suffix(1) }
        var (low, high) = (forgotten, updates.count)
        while low < high {
            let middle = (low + high) / 2
            if updates[middle].sequence > sequence { high = middle } else { low = middle + 1 }
        }
        guard low < updates.count, updates[low].base == sequence else { return nil }
        return updates[low...]
    }

    /// The log as it was when the version of this number was the last one.
    func asOf(_ sequence: UInt64) -> VersionLog {
        guard sequence < position else { return self }
        var earlier = VersionLog(keepingEach: limit, position: sequence, byteLimit: byteLimit)
        earlier.returnsUntil = returnsUntil
        for update in kept.prefix(while: { $0.sequence <= sequence }) { earlier.append(update) }
        return earlier
    }

    /// Nobody needs them, or the next one is no difference from them.
    mutating func forget() {
        newest = nil
        removeAll()
    }

    /// The same; what comes follows a version.
    mutating func begin(at position: UInt64) {
        removeAll()
        self.position = position
    }

    private mutating func dropForgotten() {
        guard forgotten > 0 else { return }
        updates.removeFirst(forgotten)
        forgotten = 0
        forgottenBytes = 0
    }

    private mutating func removeAll() {
        updates.removeAll(keepingCapacity: limit == nil)
        forgotten = 0
        forgottenBytes = 0
        bytes = 0
    }
}

extension StateUpdate {
    /// The version that it leads on from.
    fileprivate var base: UInt64 { patch?.base ?? sequence - 1 }
    /// What it holds, in bytes.
    fileprivate var storedBytes: Int { (current?.count ?? 0) + (patch?.suffix.count ?? 0) }
}
