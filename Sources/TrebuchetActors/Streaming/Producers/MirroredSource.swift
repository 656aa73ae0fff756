package import Bytes
internal import Synchronization
internal import TrebuchetWire
internal import Transports

/// A stream of another node's, for those who observe it from this one: it is fed what one subscription there is sent, and hands that on
/// as it is. It keeps what a source keeps for who is behind; the whole value is made of the last one that came and the differences since
/// when somebody needs it, and at the latest when those have become as large.
///
/// It is one life of the stream at its owner: the next one is another mirror, which may follow this one.
///
/// `@unchecked Sendable`: its isolation is a lock, which all that it has of its own is touched under.
package final class MirroredSource: StreamHub, @unchecked Sendable {
    /// How it ends.
    package enum End: Sendable {
        /// It may go on elsewhere: each subscriber is to ask there.
        case moved
        /// Its actor is gone.
        case gone
        case failed(TrebuchetError)
    }

    /// Differences that are kept beside the last whole value: as many, and as many bytes if that is smaller.
    private static let mostPatches = 1_024
    private static let leastPatchBytes = 16 << 10

    private let lock: MirrorLock
    private let didFallSilent: @Sendable () -> Void
    /// The last version of which the whole value is here.
    private var base: StateUpdate?
    /// What has come since.
    private var patches: [StateUpdate.Patch] = []
    private var patchBytes = 0
    private var ending: End?

    /// - Parameters:
    ///   - buffer: how many versions, or events, are kept where none may be left out; nil where the newest counts.
    ///   - epoch: of this life.
    ///   - lives: those before, as far as this one goes on from them.
    ///   - position: the number of the last version, or event, before those that come.
    ///   - last: the mirror of the life before, where this one goes on from all that that one has.
    ///   - memory: where large updates are counted.
    ///   - didFallSilent: told when nobody on this node observes it any more, in any isolation. It must take no lock.
    package init(
        isEvents: Bool, buffer: Int?, epoch: String, lives: [StreamLife], position: UInt64, after last: MirroredSource?,
        memory: MemoryBudget?, didFallSilent: @escaping @Sendable () -> Void
    ) {
        let lock = MirrorLock()
        self.lock = lock
        self.didFallSilent = didFallSilent
        super.init(isEvents ? .events : .state, home: nil, buffer: buffer, position: position) { lock.run($0) }
        resume(epoch: epoch, after: lives)
        memoryBudget = memory
        guard let last else { return }
        last.lock.run { [self] in
            (recent, base, patches, patchBytes) = (last.recent, last.base, last.patches, last.patchBytes)
        }
        recent.expectReturns()
    }

    // MARK: From the owner

    /// Takes what follows the stream's name in a message with a version or an event.
    ///
    /// - Returns: false when it does not follow what is here: then nothing of this is good any more.
    package func take(_ sequence: UInt64, _ suffix: UnsafeRawBufferPointer) -> Bool {
        var isGood = true
        lock.run {
            guard ending == nil else { return }
            guard let update = update(sequence, suffix) else { return isGood = false }
            recent.append(update)
            tell(.update(update))
        }
        return isGood
    }

    /// Takes the whole value of the newest version, which came as a difference.
    package func takeWhole(_ sequence: UInt64, _ suffix: UnsafeRawBufferPointer) {
        lock.run {
            guard sequence == recent.position else { return }
            keep(whole: SharedBytes(suffix, countedIn: memoryBudget), of: sequence)
        }
    }

    private func update(_ sequence: UInt64, _ suffix: UnsafeRawBufferPointer) -> StateUpdate? {
        guard sequence > recent.position else { return nil }
        let bytes = SharedBytes(suffix, countedIn: memoryBudget)
        guard let from = StreamDataParts.base(inSuffix: suffix, sequence: sequence) else {
            let update = StateUpdate(sequence: sequence, current: bytes, patch: nil, wholeByteCount: bytes.count)
            if kind == .state { (base, patches, patchBytes) = (update, [], 0) }
            return update
        }
        guard from == recent.position else { return nil }
        let patch = StateUpdate.Patch(base: from, sequence: sequence, suffix: bytes)
        patches.append(patch)
        patchBytes += bytes.count
        let size = base?.wholeByteCount ?? 0
        var whole: SharedBytes?
        if base != nil, patches.count > Self.mostPatches || patchBytes > max(size, Self.leastPatchBytes) {
            whole = folded(sequence)
            guard whole != nil else { return nil }
        }
        let update = StateUpdate(
            sequence: sequence, current: whole, patch: patch, wholeByteCount: whole?.count ?? size)
        if whole != nil { (base, patches, patchBytes) = (update, [], 0) }
        return update
    }

    /// Says the last thing that there is to say, to those who observe and who come later.
    package func finish(_ end: End) {
        lock.run {
            guard ending == nil else { return }
            ending = end
            tell(last: Self.event(end))
        }
    }

    private static func event(_ end: End) -> StateEvent {
        if case .failed(let error) = end { .failed(error) } else { .ended }
    }

    // MARK: What is asked of it

    override package var goesOnElsewhere: Bool? {
        var goesOn = false
        lock.run { if case .moved = ending { goesOn = true } }
        return goesOn
    }

    package var hasEnded: Bool {
        var hasEnded = false
        lock.run { hasEnded = ending != nil }
        return hasEnded
    }

    /// Whether it could go on with differences alone.
    package var isWhole: Bool {
        var isWhole = kind == .events
        lock.run { if base != nil { isWhole = true } }
        return isWhole
    }

    /// The number of the last version, or event, that has come.
    package var position: UInt64 {
        var position: UInt64 = 0
        lock.run { position = recent.position }
        return position
    }

    /// Whether who has seen that, and nothing later, can be given all that he may not miss.
    package func serves(behind sequence: UInt64) -> Bool {
        guard buffer != nil, kind == .events || sequence > 0 else { return true }
        var isThere = false
        lock.run { isThere = recent.updates(since: sequence) != nil }
        return isThere
    }

    /// Sends a broadcaster of this node what it begins with, and all that comes.
    package func begin(_ broadcaster: Broadcaster) { enter { self.attach(broadcaster) } }

    override package func attach(_ broadcaster: Broadcaster) {
        if let ending { return broadcaster.send(Self.event(ending)) }
        super.attach(broadcaster)
    }

    override func whole(for broadcaster: Broadcaster) {
        if recent.newest?.current == nil, !patches.isEmpty, let whole = folded(recent.position) {
            keep(whole: whole, of: recent.position)
        }
        guard let newest = recent.newest else { return }
        if newest.current != nil { return broadcaster.send(.whole(newest)) }
        // The differences do not fit: who observes begins anew.
        ending = .moved
        tell(last: .ended)
    }

    override package func endIfUnused() { whileAlone { didFallSilent() } }

    // MARK: The whole value

    private func keep(whole: SharedBytes, of sequence: UInt64) {
        let newest = recent.newest
        let update = StateUpdate(
            sequence: sequence, current: whole, patch: newest?.sequence == sequence ? newest?.patch : nil,
            wholeByteCount: whole.count)
        recent.newest = update
        (base, patches, patchBytes) = (update, [], 0)
    }

    /// The last whole value with all differences since; nil when they do not fit.
    private func folded(_ sequence: UInt64) -> SharedBytes? {
        guard let base, let data = base.data else { return nil }
        // One patch is the operations of another one after its own.
        var all: [UInt8] = [UInt8(ascii: "[")]
        all.reserveCapacity(patchBytes)
        for patch in patches {
            let text = StreamDataParts.patch(
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
        text.withUnsafeBytes { StreamDataParts.appendSuffix(sequence: sequence, data: $0, into: &message) }
        return SharedBytes(message.bytes, countedIn: memoryBudget)
    }
}

/// The isolation of what lives on no actor. Whoever is in it does not enter it again.
private final class MirrorLock: Sendable {
    private let mutex = Mutex<Void>(())

    func run(_ body: () -> Void) { mutex.withLock { _ in body() } }
}
