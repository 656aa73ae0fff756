internal import Bytes
internal import Deltas
internal import Platform
internal import TrebuchetWire

/// The encoding of versions as updates: the value, and the delta from the previous version.
extension StateSource {
    /// The size in bytes of JSON below which no delta is computed.
    private static var smallestPatched: Int { 128 }
    /// The additional size of a message with a patch over one with the value.
    private static var patchOverhead: Int { #","base":"#.utf8.count + 20 }

    /// Encodes the newest version.
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
                snapshotByteCount: snapshotByteCount, createdAt: MonotonicClock.now)
            recent.append(update)
            didMake(update)
            return .update(update)
        } catch {
            return failure(error)
        }
    }

    /// Counts a version, and reports to the event handlers the calls that changed it.
    private func didMake(_ update: StateUpdate) {
        guard let home else { return }
        home.counts.count(.versionsMade)
        guard let causes = causes.takeRecorded() else { return }
        reportVersion(update, by: causes, at: home)
    }

    /// Returns the newest version with its whole value, which may have been omitted when it was sent.
    func newestSnapshot() -> StateEvent {
        guard property.isThere else { return .ended }
        let newest = recent.newest.flatMap { $0.sequence == version ? $0 : nil }
        if let newest, newest.current != nil { return .snapshot(newest) }
        do {
            guard let current = try suffix() else { return .ended }
            let update = StateUpdate(
                sequence: version, current: current, patch: newest?.patch, snapshotByteCount: snapshotByteCount)
            recent.newest = update
            return .snapshot(update)
        } catch {
            return failure(error)
        }
    }

    /// Returns the part after the streamID of a message with the current value; nil after the actor was released.
    func suffix() throws -> SharedBytes? {
        countEncoding()
        var data = ByteBuffer()
        guard try property.encode(with: coder, into: &data) else { return nil }
        let suffix = suffix(data, sequence: version)
        snapshotByteCount = suffix.count
        return suffix
    }

    func unencodable(_ error: any Error) -> TrebuchetError {
        TrebuchetError(.internal, "state of type \(property.type) cannot be encoded: \(describe(error))")
    }

    private func failure(_ error: any Error) -> StateEvent {
        // Changes may have been taken and lost, so the next version is no delta from the previous one.
        recent.discardVersions()
        return .failed(unencodable(error))
    }

    /// Returns the recorded changes since the last version as a patch, if it is smaller than the whole value was.
    private func recordedPatch() -> StateUpdate.Patch? {
        guard let changes = takeChanges?(coder), let last = recent.newest else { return nil }
        var patch = ByteBuffer()
        changes.write(into: &patch)
        guard patch.count + Self.patchOverhead < snapshotByteCount else { return nil }
        return message(patch.bytes, from: last.sequence, to: version)
    }

    /// Returns the new version as a delta from the last one, if the delta is smaller.
    private func comparedPatch(to current: SharedBytes) -> StateUpdate.Patch? {
        guard takeChanges == nil, let last = recent.newest, last.sequence < version, let old = last.data,
            current.count >= Self.smallestPatched
        else { return nil }
        let new = StreamDataEncoding.data(inSuffix: current.bytes, sequence: version)
        guard new.count > Self.patchOverhead, comparisons.isWorth(of: new.count) else { return nil }
        let difference = JSONPatch.difference(from: old, to: new, maximumBytes: new.count - Self.patchOverhead)
        comparisons.did(of: new.count, isOfUse: difference != nil)
        guard let patch = difference else { return nil }
        return patch.withUnsafeBytes { message($0, from: last.sequence, to: version) }
    }

    /// Returns the message for subscribers with the version `base`.
    func message(_ patch: UnsafeRawBufferPointer, from base: UInt64, to version: UInt64) -> StateUpdate.Patch {
        var message = ByteBuffer(capacity: patch.count + 128)
        StreamDataEncoding.appendSuffix(sequence: version, patch: patch, base: base, into: &message)
        return StateUpdate.Patch(
            base: base, sequence: version, suffix: SharedBytes(message.bytes, countedIn: memoryBudget))
    }
}

/// The backoff for comparisons of large values. If deltas of a large value are useless, most versions are not compared: a
/// comparison takes longer than encoding.
struct ComparisonBackoff {
    /// The minimum size of JSON in bytes for the backoff; smaller values are always compared.
    private static let smallest = 32 << 10
    private static let maximumPause = 4

    private var failures = 0
    private var pause = 0

    /// Returns whether a value of this size is to be compared.
    mutating func isWorth(of count: Int) -> Bool {
        guard count >= Self.smallest, pause > 0 else { return true }
        pause -= 1
        return false
    }

    /// Records the result of a comparison.
    ///
    /// - Parameter isOfUse: whether the delta was smaller.
    mutating func did(of count: Int, isOfUse: Bool) {
        guard !isOfUse, count >= Self.smallest else { return failures = 0 }
        failures = min(failures + 1, Self.maximumPause)
        pause = (1 << failures) - 1
    }
}
