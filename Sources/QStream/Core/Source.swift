/// Sends values into a chain, one after another in the order in which they were given.
@usableFromInline
final class Source<Value: Sendable>: Sendable {
    @usableFromInline let outlet: Outlet<Value>
    @usableFromInline let line: Line
    /// What was sent from within a delivery, and has yet to come out: the newest value, and how many.
    private let queued = Kept<(newest: Value?, count: Int)>((nil, 0))

    init(_ outlet: Outlet<Value>, _ what: StaticString) {
        self.outlet = outlet
        line = Line(what)
    }

    /// Returns when everybody below has dealt with the value.
    @inlinable
    func send(_ value: Value) async {
        let wave = outlet.makeWave()
        guard await line.enter(wave.task) else { return sendLater(value) }
        await wave.run { await outlet.emit(value, wave) }
        line.leave()
        await wave.settle()
    }

    /// For a task that is inside the line already.
    @usableFromInline
    func sendLater(_ value: Value) {
        _ = queued.withLock { queued in
            defer { queued = (value, queued.count + 1) }
            return queued.newest
        }
        line.later {
            let own = Wave(from: self.outlet)
            await own.run { await self.outlet.emit(value, own) }
            _ = self.queued.withLock { queued in
                queued.count -= 1
                return queued.count == 0 ? queued.newest.take() : nil
            }
        }
    }

    /// Sends what `change` makes of the current value; no other value is sent between its reading and its sending.
    func mutate<Result, Failure: Error>(
        _ change: (inout Value) async throws(Failure) -> Result, orInitial initial: Value
    ) async throws(Failure) -> Result {
        let wave = Wave(from: outlet)
        guard await line.enter(wave.task) else { return try await mutateLater(change, orInitial: initial) }
        var value = outlet.current ?? initial
        let result: Result
        do throws(Failure) {
            result = try await change(&value)
        } catch {
            line.leave()
            throw error
        }
        await wave.run { await outlet.emit(value, wave) }
        line.leave()
        await wave.settle()
        return result
    }
}

extension Source {
    /// For a task that is inside the line already: nobody can wait. The next change begins with what this one has made.
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
    /// Emits a value that has no sender who waits: of a timer, a queue, a sequence.
    func emitAlone(_ value: Value) async {
        let wave = Wave(from: self)
        await wave.run { await emit(value, wave) }
        await wave.settle()
    }
}
