internal import Bytes

/// The receiver of the response of a call that ran in place. Accessed on the reactor of its actor.
package protocol CallResponder: AnyObject {
    /// Sends a response. The bytes are valid during the call.
    ///
    /// - Parameters:
    ///   - callID: the identifier of the call.
    ///   - outcome: the result as JSON, empty for a method without a result, or the error.
    ///   - call: the data with which the response was stored.
    func answer(
        _ callID: UnsafeRawBufferPointer, _ outcome: Result<UnsafeRawBufferPointer, any Error>,
        of call: ResponseAwaitingCommit)
}

/// A call that has run in place. Its response may wait until its changes are written.
package struct ResponseAwaitingCommit {
    let responder: any CallResponder
    package let weight: Int
    /// The deadline in nanoseconds of the reactor's clock.
    let deadline: UInt64
    /// The maximum duration of the call.
    let limit: Duration
    /// The row in which its duration is counted, and its start time on the monotonic clock.
    package let (row, began): (Int, UInt64)
    /// Set if an event handler observes the call.
    package let observedCall: ObservedCall?

    package init(
        _ responder: any CallResponder, weight: Int, deadline: UInt64, limit: Duration,
        row: Int = TimedOperation.otherCalls.rawValue, began: UInt64 = 0, observedCall: ObservedCall? = nil
    ) {
        (self.row, self.began) = (row, began)
        self.observedCall = observedCall
        self.responder = responder
        self.weight = weight
        self.deadline = deadline
        self.limit = limit
    }
}

/// The commit gate of one write: responses of calls that ran in place. Their bytes are stored consecutively, so a waiting call
/// needs no allocation.
final class CommitGate {
    /// One waiting response.
    private struct Entry {
        let call: ResponseAwaitingCommit
        let idCount: Int32
        let resultCount: Int32
        /// The index of its error; negative for none.
        var error: Int32
        var isAnswered = false

        var byteCount: Int { Int(idCount) + Int(resultCount) }
    }

    /// The capacity that is kept for further calls; more is released.
    private static let retainedCapacity = 256 << 10
    private static let retainedEntryCapacity = 4_096

    private var entries: [Entry] = []
    private var bytes = ByteBuffer()
    private var errors: [any Error] = []
    private var earliest = UInt64.max
    /// The count and size of entries that were answered before the others.
    private var answered = (count: 0, bytes: 0)

    /// The size of the buffer: that of the waiting responses and at most as much again.
    var byteCount: Int { bytes.count }
    /// The number of waiting responses.
    var count: Int { entries.count - answered.count }

    func append(
        _ call: ResponseAwaitingCommit, _ callID: UnsafeRawBufferPointer,
        _ outcome: Result<UnsafeRawBufferPointer, any Error>
    ) {
        call.observedCall?.waitsForStore()
        bytes.append(callID)
        var (result, error) = (0, -1)
        switch outcome {
        case .success(let json):
            bytes.append(json)
            result = json.count
        case .failure(let failure):
            error = errors.count
            errors.append(failure)
        }
        entries.append(
            Entry(call: call, idCount: Int32(callID.count), resultCount: Int32(result), error: Int32(error)))
        earliest = min(earliest, call.deadline)
    }

    /// Answers all entries and removes them.
    ///
    /// - Parameter failure: the error if the changes are not stored.
    func answerAll(_ failure: TrebuchetError?) {
        var offset = 0
        for entry in entries {
            let result = offset + Int(entry.idCount)
            let end = offset + entry.byteCount
            defer { offset = end }
            guard !entry.isAnswered else { continue }
            let callID = UnsafeRawBufferPointer(rebasing: bytes.bytes[offset..<result])
            let error: (any Error)? = failure ?? (entry.error < 0 ? nil : errors[Int(entry.error)])
            entry.call.responder.answer(
                callID, error.map { .failure($0) } ?? .success(.init(rebasing: bytes.bytes[result..<end])),
                of: entry.call)
        }
        reset()
    }

    /// Appends the waiting entries of another gate, which is empty afterwards.
    func appendEntries(of later: CommitGate) {
        var offset = 0
        for var entry in later.entries {
            let end = offset + entry.byteCount
            defer { offset = end }
            guard !entry.isAnswered else { continue }
            bytes.append(UnsafeRawBufferPointer(rebasing: later.bytes.bytes[offset..<end]))
            if entry.error >= 0 {
                errors.append(later.errors[Int(entry.error)])
                entry.error = Int32(errors.count - 1)
            }
            entries.append(entry)
        }
        earliest = min(earliest, later.earliest)
        later.reset()
    }

    private func reset() {
        if entries.capacity > Self.retainedEntryCapacity {
            entries = []
        } else {
            entries.removeAll(keepingCapacity: true)
        }
        bytes.reset(keepingAtMost: Self.retainedCapacity)
        errors = []
        earliest = .max
        answered = (0, 0)
    }

    /// Answers the entries whose deadline has passed.
    ///
    /// - Returns: the next deadline.
    func timeOut(at now: UInt64) -> UInt64 {
        guard earliest <= now else { return earliest }
        answerEntries(where: { $0.deadline <= now }) {
            TrebuchetError(.timeout, "the call took longer than \($0.limit)")
        }
        return earliest
    }

    /// Answers some before the write has ended.
    func answerEntries(
        where isOver: (ResponseAwaitingCommit) -> Bool, _ error: (ResponseAwaitingCommit) -> TrebuchetError
    ) {
        earliest = .max
        var late: [(call: ResponseAwaitingCommit, id: [UInt8])] = []
        var offset = 0
        for index in entries.indices {
            let entry = entries[index]
            defer { offset += entry.byteCount }
            guard !entry.isAnswered else { continue }
            if !isOver(entry.call) {
                earliest = min(earliest, entry.call.deadline)
            } else {
                entries[index].isAnswered = true
                answered = (answered.count + 1, answered.bytes + entry.byteCount)
                late.append((entry.call, Array(bytes.bytes[offset..<offset + Int(entry.idCount)])))
            }
        }
        // The rest is moved only if it is smaller than the answered part. The cost of a move is therefore at most that of the
        // responses answered since the last one.
        if answered.count * 2 > entries.count || answered.bytes * 2 > bytes.count { compact() }
        // An answered client may immediately send another call that is stored here.
        for (call, id) in late {
            id.withUnsafeBytes { call.responder.answer($0, .failure(error(call)), of: call) }
        }
    }

    /// Removes the answered entries.
    private func compact() {
        let (all, failures) = (entries, errors)
        var old = ByteBuffer()
        swap(&old, &bytes)
        (entries, errors, answered) = ([], [], (0, 0))
        var offset = 0
        for entry in all {
            let result = offset + Int(entry.idCount)
            let end = offset + entry.byteCount
            defer { offset = end }
            guard !entry.isAnswered else { continue }
            let json = UnsafeRawBufferPointer(rebasing: old.bytes[result..<end])
            append(
                entry.call, UnsafeRawBufferPointer(rebasing: old.bytes[offset..<result]),
                entry.error < 0 ? .success(json) : .failure(failures[Int(entry.error)]))
        }
        extendLifetime(old)
    }
}
