package import Networking
internal import Platform
public import Trebuchet

/// The time of one test: it runs like the machine's time, and the test can advance it.
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
/// This time applies to deadlines of calls, `atMost(every:)` of filters, pings, delays between connection attempts and
/// the idle time of actors. It also applies to rates of calls, and to the retention of responses and missed versions.
///
/// It does not apply to the rates and sessions of services, missed versions of actors with `executor: .concurrent`,
/// and clocks of an app. Make the durations of a test so long (an hour costs nothing) that they do not elapse by
/// themselves.
///
/// A client without the clock, or behind a `FaultyLink`, may respond to a ping too late when the time is advanced by
/// more than the pong timeout: set `pingInterval` to nil there.
///
/// Servers and clients with one clock run on dedicated threads, so that other tests are unaffected.
public final class TestTime: Sendable {
    private let servers: ReactorGroup
    private let clients: ReactorGroup

    /// Creates a clock.
    ///
    /// - Parameter reactors: the number of threads of each server with this clock.
    public init(reactors: Int = 1) {
        servers = .acquireExclusive(reactors)
        clients = .acquireExclusive(1)
    }

    deinit {
        servers.releaseExclusive()
        clients.releaseExclusive()
    }

    package var serverReactors: ReactorGroup { servers }
    /// The time of this clock in nanoseconds.
    package var now: UInt64 { servers.reactors[0].now }
    package var clientReactor: Reactor { clients.reactors[0] }

    private var reactors: [Reactor] { servers.reactors + clients.reactors }

    /// Advances the clock. Due events happen at their times, in order: after a due ping, the pong may arrive before
    /// its timeout. When this returns, timers have fired; tasks that they started may still run.
    ///
    /// A connection attempt and an actor's `deactivate()` use the machine's time: the clock stops until they end, for
    /// at most 5 s in total.
    public func advance(by time: Duration) async {
        var rest = time.nanoseconds
        // Limits the number of steps, however many timers there are.
        let least = max(1, rest / 1_000)
        var patience = Patience(.seconds(5))
        await settle(within: &patience)
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
            await settle(within: &patience)
        }
    }

    /// Runs several turns of each reactor, in which messages travel to the other side and back, and more while the
    /// time is held.
    private func settle(within patience: inout Patience) async {
        repeat {
            for _ in 0..<4 {
                for reactor in reactors { await reactor.perform {} }
            }
            guard reactors.contains(where: \.isTimeHeld) else { return }
            // The awaited thread may need the processor of this one.
            await Task.yield()
        } while !patience.isExhausted()
    }
}

extension TrebuchetServer {
    /// Creates a server with the time of a test.
    public convenience init(
        transport: ServerTransport, clock: TestTime, limits: ServerLimits = ServerLimits(),
        access: AccessPolicy = .open, store: (any StateStore)? = nil, showsErrorText: Bool = false,
        log: (any ServerEventHandler)? = ConsoleLog()
    ) {
        self.init(
            transport: transport, on: clock.serverReactors, holding: clock, limits: limits, access: access,
            store: store,
            showsErrorText: showsErrorText, log: log)
    }
}

extension TrebuchetClient {
    /// Creates a client with the time of a test.
    public convenience init(transport: some ClientTransport, options: Options = Options(), clock: TestTime) {
        self.init(transport: transport, options: options, on: clock.clientReactor, holding: clock)
    }
}
