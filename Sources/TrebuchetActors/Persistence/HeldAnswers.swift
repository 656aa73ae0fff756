internal import Bytes

/// Who is told what a call was answered that ran in place. On the reactor of its actor.
package protocol CallAnswerer: AnyObject {
    /// The bytes are valid during the call.
    ///
    /// - Parameters:
    ///   - result: in JSON, empty for a method without one.
    ///   - weight: what the call was counted with.
    func answer(
        _ callID: UnsafeRawBufferPointer, _ outcome: Result<UnsafeRawBufferPointer, any Error>, weight: Int)
}

/// A call that has run in place, and whose answer may have to wait until what it changed is written.
package struct HeldCall {
    let answerer: any CallAnswerer
    let weight: Int
    /// By the clock of the reactor, in nanoseconds.
    let deadline: UInt64
    /// How long it may take.
    let limit: Duration

    package init(_ answerer: any CallAnswerer, weight: Int, deadline: UInt64, limit: Duration) {
        self.answerer = answerer
        self.weight = weight
        self.deadline = deadline
        self.limit = limit
    }
}

/// Answers that wait for one write, of calls that ran in place: their bytes lie one behind the other, so that a call that waits
/// takes no memory of its own.
final class HeldAnswers {
    private struct Entry {
        let call: HeldCall
        let idCount: Int32
        let resultCount: Int32
        /// Where its error lies; below zero for none.
        let error: Int32
    }

    /// What is kept for the next calls; more goes back.
    private static let keptBytes = 256 << 10
    private static let keptEntries = 4_096

    private var entries: [Entry] = []
    private var bytes = ByteBuffer()
    private var errors: [any Error] = []
    private var earliest = UInt64.max

    /// Of the answers that wait.
    var byteCount: Int { bytes.count }

    func append(
        _ call: HeldCall, _ callID: UnsafeRawBufferPointer, _ outcome: Result<UnsafeRawBufferPointer, any Error>
    ) {
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

    /// Answers all, and forgets them.
    ///
    /// - Parameter failure: why what they would show is not kept.
    func end(_ failure: TrebuchetError?) {
        var place = 0
        for entry in entries {
            let result = place + Int(entry.idCount)
            let end = result + Int(entry.resultCount)
            defer { place = end }
            let callID = UnsafeRawBufferPointer(rebasing: bytes.bytes[place..<result])
            let error: (any Error)? = failure ?? (entry.error < 0 ? nil : errors[Int(entry.error)])
            entry.call.answerer.answer(
                callID, error.map { .failure($0) } ?? .success(.init(rebasing: bytes.bytes[result..<end])),
                weight: entry.call.weight)
        }
        if entries.capacity > Self.keptEntries { entries = [] } else { entries.removeAll(keepingCapacity: true) }
        bytes.reset(keepingAtMost: Self.keptBytes)
        errors = []
        earliest = .max
    }

    /// Answers those whose time is over, and forgets them.
    ///
    /// - Returns: when that of the next one is.
    func timeOut(at now: UInt64) -> UInt64 {
        guard earliest <= now else { return earliest }
        let (all, failures) = (entries, errors)
        var old = ByteBuffer()
        swap(&old, &bytes)
        (entries, errors, earliest) = ([], [], .max)
        var late: [(call: HeldCall, id: UnsafeRawBufferPointer)] = []
        var place = 0
        for entry in all {
            let result = place + Int(entry.idCount)
            let end = result + Int(entry.resultCount)
            let callID = UnsafeRawBufferPointer(rebasing: old.bytes[place..<result])
            if entry.call.deadline > now {
                let json = UnsafeRawBufferPointer(rebasing: old.bytes[result..<end])
                append(entry.call, callID, entry.error < 0 ? .success(json) : .failure(failures[Int(entry.error)]))
            } else {
                late.append((entry.call, callID))
            }
            place = end
        }
        // Who is answered may call again at once, and be held here.
        for (call, id) in late {
            call.answerer.answer(
                id, .failure(TrebuchetError(.timeout, "the call took longer than \(call.limit)")), weight: call.weight)
        }
        extendLifetime(old)
        return earliest
    }
}
