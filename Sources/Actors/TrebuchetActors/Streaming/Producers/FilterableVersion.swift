internal import Bytes
internal import TrebuchetWire

/// One version of a state as JSON, encoded once for all filters of the state.
///
/// `@unchecked Sendable`: parts of the text are cached only in the isolation of the state's actor.
package final class FilterableVersion: @unchecked Sendable {
    let sequence: UInt64
    /// The part after the streamID of a message with the whole value.
    let text: SharedBytes
    private let memory: MemoryBudget?
    private var parts = FilterOperands()
    /// The size of the updates in addition to the text, in bytes.
    private(set) var ownBytes = 0
    /// The updates by the pointers of their parts.
    private var updates: [String: StateUpdate] = [:]
    /// The texts of updates that another thread has made in advance.
    private var prepared: [String: SharedBytes] = [:]
    private var preparedBytes = 0

    init(_ text: SharedBytes, sequence: UInt64, memory: MemoryBudget?) {
        self.memory = memory
        self.text = text
        self.sequence = sequence
    }

    private var data: UnsafeRawBufferPointer { StreamDataEncoding.data(inSuffix: text.bytes, sequence: sequence) }

    /// Locates several parts in one pass.
    func find(_ pointers: PointerSet) { parts.find(pointers, in: data) }

    func evaluate(_ evaluation: inout FilterEvaluation) -> FilterEvaluation.Outcome {
        evaluation.evaluate(data, &parts)
    }

    /// Returns the number of bytes that `update(at:)` would allocate.
    func cost(at pointer: String) -> Int {
        if updates[pointer] != nil || pointer.isEmpty { return 0 }
        return parts.range(of: pointer, in: data)?.count ?? 0
    }

    /// Returns a part as subscribers receive it: null if it does not exist. All subscribers share it.
    func update(at pointer: String) -> StateUpdate {
        if let update = updates[pointer] { return update }
        var suffix = text
        if !pointer.isEmpty {
            suffix = prepared.removeValue(forKey: pointer) ?? makeSuffix(at: pointer)
            ownBytes += suffix.count
        }
        let update = StateUpdate(sequence: sequence, current: suffix, patch: nil, snapshotByteCount: suffix.count)
        updates[pointer] = update
        return update
    }

    /// Makes the text of an update in advance, before the version has other users. All of them are together no longer than the
    /// version, because the limit for filters does not count them.
    func prepareUpdate(at pointer: String) {
        guard !pointer.isEmpty, prepared[pointer] == nil else { return }
        guard preparedBytes + cost(at: pointer) <= text.count else { return }
        let suffix = makeSuffix(at: pointer)
        prepared[pointer] = suffix
        preparedBytes += suffix.count
    }

    /// Frees the texts of updates that no filter has used.
    func dropPreparedUpdates() { prepared = [:] }

    private func makeSuffix(at pointer: String) -> SharedBytes {
        var message = ByteBuffer(capacity: cost(at: pointer) + 128)
        if let part = parts.part(pointer, of: data) {
            append(part, to: &message)
        } else {
            Array("null".utf8).withUnsafeBytes { append($0, to: &message) }
        }
        return SharedBytes(message.bytes, countedIn: memory)
    }

    private func append(_ part: UnsafeRawBufferPointer, to message: inout ByteBuffer) {
        StreamDataEncoding.appendSuffix(sequence: sequence, data: part, into: &message)
    }
}
