package import Bytes
internal import Synchronization
internal import TrebuchetWire
internal import Transports

/// The local replica of a stream of another node, for subscribers on this node. It receives the messages of one subscription to
/// the owner and forwards them unchanged. It retains versions like a source. The whole value is computed from the last whole
/// value and the deltas since then: when it is needed, or when the deltas have become as large as the value.
///
/// It represents one incarnation of the stream at its owner. The next incarnation has another replica, which may continue from
/// this one.
///
/// `@unchecked Sendable`: its isolation is a lock, under which all its own properties are accessed.
package final class RemoteStreamReplica: StreamProducer, @unchecked Sendable {
    /// The reason for the end of a replica.
    package enum EndReason: Sendable {
        /// The stream may continue on another node; each subscriber has to request it there.
        case moved
        /// The actor no longer exists.
        case actorNotFound
        case failed(TrebuchetError)
    }

    /// The maximum number of deltas kept beside the last whole value, and their minimum size in bytes before they are folded
    /// into a whole value.
    private static let maximumPatches = 1_024
    private static let minimumPatchBytes = 16 << 10

    private let lock: StreamReplicaLock
    private let didFallSilent: @Sendable () -> Void
    /// The last version with a whole value.
    private var base: StateUpdate?
    /// The deltas since then.
    private var patches: [StateUpdate.Patch] = []
    private var patchBytes = 0
    private var ending: EndReason?

    /// Creates a replica.
    ///
    /// - Parameters:
    ///   - buffer: the number of versions or events that are retained in a stream without conflation; nil if the newest counts.
    ///   - epoch: the epoch of this incarnation.
    ///   - incarnations: the incarnations that this one continues.
    ///   - position: the number of the last version or event before the first that arrives.
    ///   - last: the replica of the previous incarnation, if this one continues all of it.
    ///   - memory: the budget in which large updates are counted.
    ///   - didFallSilent: called after the last subscription on this node ends, in any isolation. It must not acquire a lock.
    package init(
        isEvents: Bool, buffer: Int?, epoch: String, incarnations: [StreamIncarnation], position: UInt64,
        after last: RemoteStreamReplica?,
        memory: MemoryBudget?, didFallSilent: @escaping @Sendable () -> Void
    ) {
        let lock = StreamReplicaLock()
        self.lock = lock
        self.didFallSilent = didFallSilent
        super.init(isEvents ? .events : .state, home: nil, buffer: buffer, position: position) { lock.run($0) }
        resume(epoch: epoch, after: incarnations)
        memoryBudget = memory
        guard let last else { return }
        last.lock.run { [self] in
            (recent, base, patches, patchBytes) = (last.recent, last.base, last.patches, last.patchBytes)
        }
        recent.expectReturns()
    }

    // MARK: From the owner

    /// Receives the part after the stream's name of a message with a version or an event.
    ///
    /// - Returns: false if it does not continue the local state, which is then invalid.
    package func receiveMessage(_ sequence: UInt64, _ suffix: UnsafeRawBufferPointer) -> Bool {
        var isValid = true
        lock.run {
            guard ending == nil else { return }
            guard let update = update(sequence, suffix) else { return isValid = false }
            recent.append(update)
            broadcast(.update(update))
        }
        return isValid
    }

    /// Receives the whole value of the newest version, which came as a delta.
    package func receiveSnapshot(_ sequence: UInt64, _ suffix: UnsafeRawBufferPointer) {
        lock.run {
            guard sequence == recent.position else { return }
            storeSnapshot(SharedBytes(suffix, countedIn: memoryBudget), of: sequence)
        }
    }

    private func update(_ sequence: UInt64, _ suffix: UnsafeRawBufferPointer) -> StateUpdate? {
        guard sequence > recent.position else { return nil }
        let bytes = SharedBytes(suffix, countedIn: memoryBudget)
        guard let from = StreamDataEncoding.base(inSuffix: suffix, sequence: sequence) else {
            let update = StateUpdate(sequence: sequence, current: bytes, patch: nil, snapshotByteCount: bytes.count)
            if kind == .state { (base, patches, patchBytes) = (update, [], 0) }
            return update
        }
        guard from == recent.position else { return nil }
        let patch = StateUpdate.Patch(base: from, sequence: sequence, suffix: bytes)
        patches.append(patch)
        patchBytes += bytes.count
        let size = base?.snapshotByteCount ?? 0
        var whole: SharedBytes?
        if base != nil, patches.count > Self.maximumPatches || patchBytes > max(size, Self.minimumPatchBytes) {
            whole = mergedValue(sequence)
            guard whole != nil else { return nil }
        }
        let update = StateUpdate(
            sequence: sequence, current: whole, patch: patch, snapshotByteCount: whole?.count ?? size)
        if whole != nil { (base, patches, patchBytes) = (update, [], 0) }
        return update
    }

    /// Sends the last event to current and later subscribers.
    package func finish(_ end: EndReason) {
        lock.run {
            guard ending == nil else { return }
            ending = end
            broadcastEnd(Self.event(end))
        }
    }

    private static func event(_ end: EndReason) -> StateEvent {
        if case .failed(let error) = end { .failed(error) } else { .ended }
    }

    // MARK: Queries

    override package var requiresNewRequest: Bool? {
        var hasMoved = false
        lock.run { if case .moved = ending { hasMoved = true } }
        return hasMoved
    }

    package var hasEnded: Bool {
        var hasEnded = false
        lock.run { hasEnded = ending != nil }
        return hasEnded
    }

    /// The error with which the stream has ended; nil without one.
    package var failure: TrebuchetError? {
        var failure: TrebuchetError?
        lock.run { if case .failed(let error) = ending { failure = error } }
        return failure
    }

    /// Indicates whether the replica can continue from deltas alone.
    package var canApplyDeltas: Bool {
        var isWhole = kind == .events
        lock.run { if base != nil { isWhole = true } }
        return isWhole
    }

    /// The number of the last version or event received.
    package var position: UInt64 {
        var position: UInt64 = 0
        lock.run { position = recent.position }
        return position
    }

    /// Returns whether a subscriber at this sequence number can receive everything that it must not miss.
    package func serves(behind sequence: UInt64) -> Bool {
        guard buffer != nil, kind == .events || sequence > 0 else { return true }
        var isThere = false
        lock.run { isThere = recent.updates(since: sequence) != nil }
        return isThere
    }

    /// Sends a broadcaster of this node its first event and all later ones.
    package func attachBroadcaster(_ broadcaster: Broadcaster) { enter { self.attach(broadcaster) } }

    override package func attach(_ broadcaster: Broadcaster) {
        if let ending { return broadcaster.send(Self.event(ending)) }
        super.attach(broadcaster)
    }

    override func sendSnapshot(to broadcaster: Broadcaster) {
        if recent.newest?.current == nil, !patches.isEmpty, let whole = mergedValue(recent.position) {
            storeSnapshot(whole, of: recent.position)
        }
        guard let newest = recent.newest else { return }
        if newest.current != nil { return broadcaster.send(.snapshot(newest)) }
        // The deltas do not fit, so subscribers have to start again.
        ending = .moved
        broadcastEnd(.ended)
    }

    override package func endIfUnused() { whileUnused { didFallSilent() } }

    // MARK: The whole value

    private func storeSnapshot(_ whole: SharedBytes, of sequence: UInt64) {
        let newest = recent.newest
        let update = StateUpdate(
            sequence: sequence, current: whole, patch: newest?.sequence == sequence ? newest?.patch : nil,
            snapshotByteCount: whole.count)
        recent.newest = update
        (base, patches, patchBytes) = (update, [], 0)
    }

    /// Returns the last whole value with all deltas since then; nil if they do not fit.
    private func mergedValue(_ sequence: UInt64) -> SharedBytes? {
        guard let base, let data = base.data else { return nil }
        // Concatenating the operations of patches gives one patch.
        var all: [UInt8] = [UInt8(ascii: "[")]
        all.reserveCapacity(patchBytes)
        for patch in patches {
            let text = StreamDataEncoding.patch(
                inSuffix: patch.suffix.bytes, sequence: patch.sequence, base: patch.base)
            let operations = text.dropFirst().dropLast()
            guard !operations.isEmpty else { continue }
            if all.count > 1 { all.append(UInt8(ascii: ",")) }
            all += operations
        }
        all.append(UInt8(ascii: "]"))
        let most = Int(Int32.max)
        let text = all.withUnsafeBytes { try? JSONPatch.apply($0, to: data, maximumBytes: most, workLimit: most) }
        guard let text else { return nil }
        var message = ByteBuffer(capacity: text.count + 128)
        text.withUnsafeBytes { StreamDataEncoding.appendSuffix(sequence: sequence, data: $0, into: &message) }
        return SharedBytes(message.bytes, countedIn: memoryBudget)
    }
}

/// The isolation of an object without an actor. It is not reentrant.
private final class StreamReplicaLock: Sendable {
    private let mutex = Mutex<Void>(())

    func run(_ body: () -> Void) { mutex.withLock { _ in body() } }
}
