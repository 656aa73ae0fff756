internal import Bytes

/// Who is told what a call was answered that ran in place. On the reactor of its actor.
package protocol CallAnswerer: AnyObject {
    /// The bytes are valid during the call.
    ///
    /// - Parameters:
    ///   - result: in JSON, empty for a method without one.
    ///   - call: what it was held with.
    func answer(
        _ callID: UnsafeRawBufferPointer, _ outcome: Result<UnsafeRawBufferPointer, any Error>, of call: HeldCall)
}

/// A call that has run in place, and whose answer may have to wait until what it changed is written.
package struct HeldCall {
    let answerer: any CallAnswerer
    package let weight: Int
    /// By the clock of the reactor, in nanoseconds.
    let deadline: UInt64
    /// How long it may take.
    let limit: Duration
    /// Where its time is counted, and since when that runs, by the monotonic clock.
    package let (row, began): (Int, UInt64)
    /// Set while somebody listens.
    package let told: ToldCall?

    package init(
        _ answerer: any CallAnswerer, weight: Int, deadline: UInt64, limit: Duration,
        row: Int = TimedWork.otherCalls.rawValue, began: UInt64 = 0, told: ToldCall? = nil
    ) {
        (self.row, self.began) = (row, began)
        self.told = told
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
        var error: Int32
        var isAnswered = false

        var byteCount: Int { Int(idCount) + Int(resultCount) }
    }

    /// What is kept for the next calls; more goes back.
    private static let keptBytes = 256 << 10
    private static let keptEntries = 4_096

    private var entries: [Entry] = []
    private var bytes = ByteBuffer()
    private var errors: [any Error] = []
    private var earliest = UInt64.max
    /// What the entries have that were answered before the others.
    private var answered = (count: 0, bytes: 0)

    /// Of the answers that wait, and at most as many again.
    var byteCount: Int { bytes.count }
    /// Answers that wait.
    var count: Int { entries.count - answered.count }

    func append(
        _ call: HeldCall, _ callID: UnsafeRawBufferPointer, _ outcome: Result<UnsafeRawBufferPointer, any Error>
    ) {
        call.told?.waitsForStore()
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
            let end = place + entry.byteCount
            defer { place = end }
            guard !entry.isAnswered else { continue }
            let callID = UnsafeRawBufferPointer(rebasing: bytes.bytes[place..<result])
            let error: (any Error)? = failure ?? (entry.error < 0 ? nil : errors[Int(entry.error)])
            entry.call.answerer.answer(
                callID, error.map { .failure($0) } ?? .success(.init(rebasing: bytes.bytes[result..<end])),
                of: entry.call)
        }
        reset()
    }

    /// Takes over what waits in another, behind its own. The other is empty then.
    func take(_ later: HeldAnswers) {
        var place = 0
        for var entry in later.entries {
            let end = place + entry.byteCount
            defer { place = end }
            guard !entry.isAnswered else { continue }
            bytes.append(UnsafeRawBufferPointer(rebasing: later.bytes.bytes[place..<end]))
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
        if entries.capacity > Self.keptEntries { entries = [] } else { entries.removeAll(keepingCapacity: true) }
        bytes.reset(keepingAtMost: Self.keptBytes)
        errors = []
        earliest = .max
        answered = (0, 0)
    }

    /// Answers those whose time is over.
    ///
    /// - Returns: when that of the next one is.
    func timeOut(at now: UInt64) -> UInt64 {
        guard earliest <= now else { return earliest }
        end(where: { $0.deadline <= now }) { TrebuchetError(.timeout, "the call took longer than \($0.limit)") }
        return earliest
    }

    /// Answers some before the write has ended.
    func end(where isOver: (HeldCall) -> Bool, _ error: (HeldCall) -> TrebuchetError) {
        earliest = .max
        var late: [(call: HeldCall, id: [UInt8])] = []
        var place = 0
        for index in entries.indices {
            let entry = entries[index]
            defer { place += entry.byteCount }
            guard !entry.isAnswered else { continue }
            if !isOver(entry.call) {
                earliest = min(earliest, entry.call.deadline)
            } else {
                entries[index].isAnswered = true
                answered = (answered.count + 1, answered.bytes + entry.byteCount)
                late.append((entry.call, Array(bytes.bytes[place..<place + Int(entry.idCount)])))
            }
        }
        // What is left is moved when it is less than what goes: each time that costs no more than has been answered since.
        if answered.count * 2 > entries.count || answered.bytes * 2 > bytes.count { compact() }
        // Who is answered may call again at once, and be held here.
        for (call, id) in late {
            id.withUnsafeBytes { call.answerer.answer($0, .failure(error(call)), of: call) }
        }
    }

    /// Lets go of what has been answered.
    private func compact() {
        let (all, failures) = (entries, errors)
        var old = ByteBuffer()
        swap(&old, &bytes)
        (entries, errors, answered) = ([], [], (0, 0))
        var place = 0
        for entry in all {
            let result = place + Int(entry.idCount)
            let end = place + entry.byteCount
            defer { place = end }
            guard !entry.isAnswered else { continue }
            let json = UnsafeRawBufferPointer(rebasing: old.bytes[result..<end])
            append(
                entry.call, UnsafeRawBufferPointer(rebasing: old.bytes[place..<result]),
                entry.error < 0 ? .success(json) : .failure(failures[Int(entry.error)]))
        }
        extendLifetime(old)
    }
}
