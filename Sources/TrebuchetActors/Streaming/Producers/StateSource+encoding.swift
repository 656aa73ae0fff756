internal import Bytes
internal import Deltas
internal import Platform
internal import TrebuchetWire

/// How versions of a state become updates: the value, and the difference from the version before.
extension StateSource {
    /// Below this many bytes of JSON a difference is not worth its search.
    private static var smallestPatched: Int { 128 }
    /// What a message with a patch has more than one with the value.
    private static var patchOverhead: Int { #","base":"#.utf8.count + 20 }

    /// The newest version, made ready to be sent.
    func encode() -> StateEvent {
        do {
            let recorded = recordedPatch()
            var current: SharedBytes?
            if recorded == nil {
                guard let text = try suffix() else { return .ended }
                current = text
            }
            let update = StateUpdate(
                sequence: version, current: current, patch: recorded ?? current.flatMap(comparedPatch),
                wholeByteCount: wholeByteCount, made: MonotonicClock.now)
            recent.append(update)
            didMake(update)
            return .update(update)
        } catch {
            return failure(error)
        }
    }

    /// Counts a version, and tells who listens which calls made it.
    private func didMake(_ update: StateUpdate) {
        guard let home else { return }
        home.counts.count(.versionsMade)
        guard let causes = causes.take() else { return }
        tell(update, by: causes, at: home)
    }

    /// The newest version with its whole value, which may have been sent without.
    func whole() -> StateEvent {
        guard property.isThere else { return .ended }
        let newest = recent.newest.flatMap { $0.sequence == version ? $0 : nil }
        if let newest, newest.current != nil { return .whole(newest) }
        do {
            guard let current = try suffix() else { return .ended }
            let update = StateUpdate(
                sequence: version, current: current, patch: newest?.patch, wholeByteCount: wholeByteCount)
            recent.newest = update
            return .whole(update)
        } catch {
            return failure(error)
        }
    }

    /// What follows the streamID in a message with the value of now; nil when the actor is gone.
    func suffix(_ dates: DateForm = .milliseconds) throws -> SharedBytes? {
        countEncoding()
        var data = ByteBuffer()
        guard try property.encode(with: coder(writing: dates), into: &data) else { return nil }
        let suffix = suffix(data, sequence: version)
        if dates == .milliseconds { wholeByteCount = suffix.count }
        return suffix
    }

    func unencodable(_ error: any Error) -> TrebuchetError {
        TrebuchetError(.internal, "state of type \(property.type) cannot be encoded: \(describe(error))")
    }

    private func failure(_ error: any Error) -> StateEvent {
        // Changes may have been taken that nobody gets: what follows is no difference from the version before.
        recent.forget()
        return .failed(unencodable(error))
    }

    /// The new version as what the state has noted since the last one, when that is smaller than the whole value was.
    private func recordedPatch() -> StateUpdate.Patch? {
        guard let changes = takeChanges?(coder()), let last = recent.newest else { return nil }
        var patch = ByteBuffer()
        changes.write(into: &patch)
        guard patch.count + Self.patchOverhead < wholeByteCount else { return nil }
        return message(patch.bytes, from: last.sequence, to: version)
    }

    /// The new version as the difference from the last one, when that is smaller.
    private func comparedPatch(to current: SharedBytes) -> StateUpdate.Patch? {
        guard takeChanges == nil, let last = recent.newest, last.sequence < version, let old = last.data,
            current.count >= Self.smallestPatched
        else { return nil }
        let new = StreamDataParts.data(inSuffix: current.bytes, sequence: version)
        guard new.count > Self.patchOverhead,
            let patch = JSONPatch.difference(from: old, to: new, maximumBytes: new.count - Self.patchOverhead)
        else { return nil }
        return patch.withUnsafeBytes { message($0, from: last.sequence, to: version) }
    }

    /// What those are sent who have the version `base`.
    func message(_ patch: UnsafeRawBufferPointer, from base: UInt64, to version: UInt64) -> StateUpdate.Patch {
        var message = ByteBuffer(capacity: patch.count + 128)
        StreamDataParts.appendSuffix(sequence: version, patch: patch, base: base, into: &message)
        return StateUpdate.Patch(
            base: base, sequence: version, suffix: SharedBytes(message.bytes, countedIn: memoryBudget))
    }
}
