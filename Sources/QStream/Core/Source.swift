/// Sends values into a chain, one after another in the order in which they were given.
final class Source<Value: Sendable>: Sendable {
    let outlet: Outlet<Value>
    private let line: Line

    init(_ outlet: Outlet<Value>, _ what: StaticString) {
        self.outlet = outlet
        line = Line(what)
    }

    /// Returns when everybody below has dealt with the value.
    func send(_ value: Value) async {
        let wave = Wave(from: outlet)
        guard await line.enter(wave.task) else {
            return line.later {
                let own = Wave(from: self.outlet)
                await own.run { await self.outlet.emit(value, own) }
            }
        }
        await wave.run { await outlet.emit(value, wave) }
        line.leave()
        await wave.settle()
    }

    /// Sends what `change` makes of the current value; no other value is sent between its reading and its sending.
    func mutate<Result, Failure: Error>(
        _ change: (inout Value) async throws(Failure) -> Result, orInitial initial: Value
    ) async throws(Failure) -> Result {
        let wave = Wave(from: outlet)
        let isFirst = await line.enter(wave.task)
        var value = outlet.current ?? initial
        guard isFirst else {
            let result = try await change(&value)
            await send(value)
            return result
        }
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

extension Outlet {
    /// Emits a value that has no sender who waits: of a timer, a queue, a sequence.
    func emitAlone(_ value: Value) async {
        let wave = Wave(from: self)
        await wave.run { await emit(value, wave) }
        await wave.settle()
    }
}
