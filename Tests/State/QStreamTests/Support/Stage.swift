import QStream
import Synchronization
import Testing

/// The environment of a marble test: a manual clock and a manual executor, so that nothing depends on real time or on the order in which
/// threads run.
///
/// One character of a diagram is one tick. `-` is a tick without events, `(ab)` is one tick with two values.
final class Stage: Sendable {
    static let tick = Duration.seconds(1)
    let clock = TestClock()
    private let executor = TestExecutor()
    private let retained = Mutex<[any Sendable]>([])

    /// Runs the work on the stage and returns when all its immediate effects are done.
    func perform(_ work: @escaping @Sendable () async -> Void) {
        _ = Task.detached(executorPreference: executor, operation: work)
        executor.runUntilIdle()
    }

    /// Lets ticks pass, waking each sleeper at its own time.
    func advance(ticks: Double = 1) {
        let end = clock.now.advanced(by: Self.tick * ticks)
        while let next = clock.nextWakeUp, next <= end {
            clock.set(to: next)
            executor.runUntilIdle()
        }
        clock.set(to: end)
        executor.runUntilIdle()
    }

    func keep(_ something: any Sendable) { retained.withLock { $0.append(something) } }
    /// Releases the retained subscriptions and chains.
    func release() {
        let released = retained.withLock { retained in
            let released = retained
            retained = []
            return released
        }
        withExtendedLifetime(released) {}
        executor.runUntilIdle()
    }

    /// Plays a diagram per relay and returns the diagram of the chain's output.
    ///
    /// In each tick the clock is set first, then the values of the tick are sent.
    ///
    /// - Parameter busy: the number of ticks that the subscriber needs for each value; a value appears at its start.
    func play<S: Stream<String>>(
        _ inputs: String..., taking busy: Int = 0, build: @escaping @Sendable ([Relay<String>], TestClock) async -> S
    ) -> String {
        let relays = inputs.map { _ in Relay<String>() }
        let output = Ticks()
        perform {
            let chain = await build(relays, self.clock)
            let subscription = await chain.tap { value in
                output.note(value)
                if busy > 0 { try? await self.clock.sleep(for: Self.tick * busy) }
            }
            self.keep(subscription)
        }
        let marbles = inputs.map(Marbles.parse)
        for tick in 0..<(marbles.map(\.count).max() ?? 0) {
            if tick > 0 {
                output.next()
                advance()
            }
            for (relay, marbles) in zip(relays, marbles) where tick < marbles.count {
                for value in marbles[tick] { perform { await relay.send(value) } }
            }
        }
        release()
        return output.diagram
    }
}

/// The output, tick by tick.
private final class Ticks: Sendable {
    private let ticks = Mutex<[[String]]>([[]])

    func note(_ value: String) { ticks.withLock { $0[$0.count - 1].append(value) } }
    func next() { ticks.withLock { $0.append([]) } }
    var diagram: String { Marbles.draw(ticks.withLock { $0 }) }
}
