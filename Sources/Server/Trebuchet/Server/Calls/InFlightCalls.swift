internal import Bytes
internal import TrebuchetActors

/// The in-flight calls of one connection and their accounting. The connection performs what the functions return.
///
/// Calls in the `CallQueue` and in a `CrossReactorCallBatch` count here, but are not listed.
struct InFlightCalls {
    /// The calls by callID.
    private(set) var listed: [[UInt8]: InFlightCall] = [:]
    /// The calls whose callID another call has taken.
    private(set) var displaced: [InFlightCall] = []
    private(set) var load = CallLoad()
    /// The number of calls in the call queue.
    private(set) var queued = 0
    /// The memory account of the calls, from the first call on.
    var memory: MemoryAccount?

    // MARK: The table

    subscript(callID: [UInt8]) -> InFlightCall? { listed[callID] }

    var all: [InFlightCall] { Array(listed.values) + displaced }

    /// Adds a call. If another call has its callID, it cannot be found by it.
    mutating func list(_ call: InFlightCall) {
        if listed[call.callID] == nil { listed[call.callID] = call } else { displaced.append(call) }
    }

    /// Removes a call; returns false if it was not there.
    mutating func remove(_ call: InFlightCall) -> Bool {
        if listed[call.callID] === call {
            listed[call.callID] = nil
            return true
        }
        guard let index = displaced.firstIndex(where: { $0 === call }) else { return false }
        displaced.remove(at: index)
        return true
    }

    /// Removes and returns all calls.
    mutating func removeAll() -> [InFlightCall] {
        defer { (listed, displaced) = ([:], []) }
        return all
    }

    // MARK: The load

    /// Returns the reason to refuse a further call of this size, and the name of the setting; nil when its bytes have been reserved.
    ///
    /// - Parameter account: The memory account of the calls.
    func refusal(
        ofBytes bytes: Int, _ limits: ConnectionLimits, _ account: MemoryAccount
    ) -> (error: TrebuchetError, setting: String)? {
        if load.count >= limits.calls {
            let error = TrebuchetError(
                .rateLimited,
                "\(limits.calls) calls of this connection are in flight, which is the limit "
                    + "(ServerLimits.calls.perConnection)")
            return (error, "calls.perConnection")
        }
        if load.answered >= limits.calls {
            let error = TrebuchetError(
                .rateLimited,
                "\(load.answered) calls of this connection that timed out or were cancelled still run or have unsent responses "
                    + "(ServerLimits.calls.perConnection)")
            return (error, "calls.perConnection")
        }
        if load.bytes + bytes > limits.callBytes {
            let error = TrebuchetError(
                .rateLimited,
                "in-flight calls of this connection have \(load.bytes) bytes; the limit is "
                    + "\(limits.callBytes) (ServerLimits.calls.bytesPerConnection)")
            return (error, "calls.bytesPerConnection")
        }
        do throws(MemoryLimitExceeded) {
            try account.reserve(bytes)
            return nil
        } catch {
            return (TrebuchetError(.rateLimited, error.reason), "memory.total")
        }
    }

    /// Counts a call. Returns true if the connection must pause reading.
    mutating func count(_ call: InFlightCall) -> Bool {
        if call.isInTransit { return countInTransit(bytes: call.byteCount) }
        count(bytes: call.byteCount)
        return false
    }

    /// Stops counting a call that has no caller any more, unless work for it continues. Returns true if the connection may resume
    /// reading.
    mutating func release(_ call: InFlightCall) -> Bool {
        if call.isInTransit {
            guard !call.isContinuing else { return false }
            releaseInTransit(bytes: call.byteCount)
            return mayResumeReading()
        }
        load.count -= 1
        load.bytes -= call.byteCount
        if call.isContinuing { load.answered += 1 } else { memory?.release(call.byteCount) }
        return false
    }

    /// Stops counting a call whose work has continued. Returns true if the connection may resume reading.
    mutating func releaseWork(of call: InFlightCall) -> Bool {
        if call.isInTransit {
            releaseInTransit(bytes: call.byteCount)
            return mayResumeReading()
        }
        load.answered -= 1
        memory?.release(call.byteCount)
        return false
    }

    /// Counts work for a call that has ended without being counted for it.
    mutating func countFurtherWork() { load.answered += 1 }
    mutating func releaseFurtherWork() { load.answered -= 1 }

    /// Counts a call that takes time. Its memory is reserved already.
    mutating func count(bytes: Int) {
        load.count += 1
        load.bytes += bytes
    }

    /// Counts the result of a call, while it waits.
    mutating func countResult(bytes: Int) {
        load.bytes += bytes
        _ = memory?.adjustUsage(by: bytes)
    }

    mutating func release(bytes: Int) {
        load.count -= 1
        load.bytes -= bytes
        memory?.release(bytes)
    }

    /// Counts a call that runs in place on another reactor. Returns true if the connection must pause reading.
    mutating func countInTransit(bytes: Int) -> Bool {
        load.inTransit += 1
        load.bytesInTransit += bytes
        guard load.isFull, !load.isPaused else { return false }
        load.isPaused = true
        return true
    }

    mutating func releaseInTransit(bytes: Int) {
        load.inTransit -= 1
        load.bytesInTransit -= bytes
    }

    /// Returns true once if the connection has paused reading and may resume it.
    mutating func mayResumeReading() -> Bool {
        guard load.isPaused, load.isHalfEmpty else { return false }
        load.isPaused = false
        return true
    }

    mutating func didQueue() { queued += 1 }
    mutating func didDequeue() { queued -= 1 }
}
