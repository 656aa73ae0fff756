/// Sends values into a chain, one at a time, in the order of the calls.
@usableFromInline
final class Source<Value: Sendable>: Sendable {
    @usableFromInline let outlet: Outlet<Value>
    @usableFromInline let queue: SerialTaskQueue
    /// The values sent from within a delivery that have yet to come out: the newest, and their number.
    private let queued = OperatorState<(newest: Value?, count: Int)>((nil, 0))

    init(_ outlet: Outlet<Value>, _ activity: StaticString) {
        self.outlet = outlet
        queue = SerialTaskQueue(activity)
    }

    /// Sends a value. Returns when all streams and subscribers below have processed it.
    @inlinable
    func send(_ value: Value) async {
        let wave = outlet.makeWave()
        guard await queue.enter(wave.task) else { return sendLater(value) }
        await wave.run { await outlet.emit(value, wave) }
        queue.leave()
        await wave.settle()
    }

    /// Queues a value for a task that is already inside the line.
    @usableFromInline
    func sendLater(_ value: Value) {
        _ = queued.withLock { queued in
            defer { queued = (value, queued.count + 1) }
            return queued.newest
        }
        queue.enqueue {
            let ownWave = Wave(from: self.outlet)
            await ownWave.run { await self.outlet.emit(value, ownWave) }
            _ = self.queued.withLock { queued in
                queued.count -= 1
                return queued.count == 0 ? queued.newest.take() : nil
            }
        }
    }

    /// Sends the result of `change` on the current value. No other value is sent between its read and its sending.
    func mutate<Result, Failure: Error>(
        _ change: (inout Value) async throws(Failure) -> Result, orInitial initial: Value
    ) async throws(Failure) -> Result {
        let wave = Wave(from: outlet)
        guard await queue.enter(wave.task) else { return try await mutateLater(change, orInitial: initial) }
        var value = outlet.current ?? initial
        let result: Result
        do throws(Failure) {
            result = try await change(&value)
        } catch {
            queue.leave()
            throw error
        }
        await wave.run { await outlet.emit(value, wave) }
        queue.leave()
        await wave.settle()
        return result
    }
}

extension Source {
    /// Changes the value for a task that is already inside the line and cannot wait. The next change begins with this
    /// one's result.
    private func mutateLater<Result, Failure: Error>(
        _ change: (inout Value) async throws(Failure) -> Result, orInitial initial: Value
    ) async throws(Failure) -> Result {
        var value = queued.value.newest ?? outlet.current ?? initial
        let result = try await change(&value)
        await send(value)
        return result
    }
}

extension Outlet {
    /// Emits a value without a waiting sender: from a timer, a queue, a sequence.
    func emitAlone(_ value: Value) async {
        let wave = Wave(from: self)
        await wave.run { await emit(value, wave) }
        await wave.settle()
    }
}
