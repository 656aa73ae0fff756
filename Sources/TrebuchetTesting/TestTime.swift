package import Networking
internal import Platform
public import Trebuchet

/// The time of one test: it goes on as the machine's does, and the test turns it on.
///
///     let clock = TestTime()
///     try await withTestServer(clock: clock) { server in
///         …
///     } body: { client, _ in
///         let answer = Task { try await client.resolve(Oracle.self, id: "oracle").ask() }
///         await clock.advance(by: .seconds(30))           // the deadline of the call has passed
///         await #expect(throws: TrebuchetError.self) { try await answer.value }
///     }
///
/// By it go the deadlines of calls, `atMost(every:)` of filters, the pings of both sides, the waits between attempts to connect,
/// the idle time of actors, rates of calls, and the time for which answers and missed versions are kept. Not by it: the services'
/// rates and sessions, missed versions of actors with `executor: .concurrent`, and what an app does with clocks of its own. Give the
/// times of a test so long (an hour costs nothing) that they do not pass by themselves.
///
/// A client without the clock, or behind a `FaultyLink`, may answer a ping too late when time is turned on by more than the time for
/// its answer: set `pingInterval` to nil there.
///
/// Servers and clients with one clock live on threads of their own, so that no other test is touched.
public final class TestTime: Sendable {
    private let servers: ReactorGroup
    private let clients: ReactorGroup

    /// - Parameter reactors: threads of each server with this clock.
    public init(reactors: Int = 1) {
        servers = .takeApart(reactors)
        clients = .takeApart(1)
    }

    deinit {
        servers.giveBack()
        clients.giveBack()
    }

    package var serverReactors: ReactorGroup { servers }
    package var clientReactor: Reactor { clients.reactors[0] }

    private var reactors: [Reactor] { servers.reactors + clients.reactors }

    /// Turns the clock on. What falls due meanwhile happens at its time, one after the other: when a ping is due, and then the
    /// time for its answer, the answer may come between. When this returns, timers have fired; tasks that they started may still run.
    ///
    /// An attempt to connect and an actor's `deactivate()` take the machine's time: the clock stands still until they end, though no
    /// longer than 5 s in all.
    public func advance(by time: Duration) async {
        var rest = time.nanoseconds
        // However many timers there are, it does not take long.
        let least = max(1, rest / 1_000)
        let patience = ContinuousClock.now + .seconds(5)
        await settle(until: patience)
        while rest > 0 {
            var step = rest
            for reactor in reactors {
                let wait = await reactor.perform {
                    let now = reactor.now
                    return reactor.nextDeadline.map { $0 > now ? $0 - now : 0 }
                }
                if let wait { step = min(step, max(wait, least)) }
            }
            rest -= step
            for reactor in reactors { reactor.advance(by: step) }
            await settle(until: patience)
        }
    }

    /// Some turns of each, in which messages go to the other side and back, and as many more as what holds the clock needs.
    private func settle(until patience: ContinuousClock.Instant) async {
        repeat {
            for _ in 0..<4 {
                for reactor in reactors { await reactor.perform {} }
            }
            guard reactors.contains(where: \.isTimeHeld) else { return }
            // The thread that it waits for may need this one's processor.
            await Task.yield()
        } while ContinuousClock.now < patience
    }
}

extension TrebuchetServer {
    /// A server with the time of a test.
    public convenience init(
        transport: TrebuchetTransport, clock: TestTime, limits: ServerLimits = ServerLimits(),
        access: AccessPolicy = .open, store: (any StateStore)? = nil, showsErrorText: Bool = false,
        log: @escaping @Sendable (String) -> Void = ServerLog.standardError
    ) {
        self.init(
            transport: transport, on: clock.serverReactors, holding: clock, limits: limits, access: access,
            store: store,
            showsErrorText: showsErrorText, log: log)
    }
}

extension TrebuchetClient {
    /// A client with the time of a test.
    public convenience init(transport: TrebuchetTransport, options: Options = Options(), clock: TestTime) {
        self.init(transport: transport, options: options, on: clock.clientReactor, holding: clock)
    }
}
