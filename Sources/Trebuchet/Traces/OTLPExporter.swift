internal import Outbound
internal import Synchronization
public import TrebuchetActors
public import Transports

/// Sends spans to a collector of OpenTelemetry: OTLP over HTTP, in JSON.
///
///     let exporter = try OTLPExporter(url: "http://localhost:4318")
///     server.addListener(exporter)
///     server.sampleTraces(0.01)
///     options.spanEnded = exporter.add  // of clients in the same program
///
/// Spans are gathered for a second, or until there are 512, and sent by a task of its own. While a collector is away or slow up to 4,096 wait;
/// what comes beyond that, and what it does not take, is left out and counted, and a line says so. Nobody waits for it.
public final class OTLPExporter: ServerListener {
    private static let batch = 512
    private static let most = 4_096

    /// Parts of traces.
    public let kinds: ServerEvent.Kinds = .spans
    private let address: HTTPAddress
    private let service: String
    private let gathering: Duration
    private let log: @Sendable (String) -> Void

    private struct State {
        var spans: [TraceSpan] = []
        var isSending = false
        var left = 0
        /// What is left out and no line has said.
        var unsaid = 0
        var sent = 0
        /// Ends the gathering early.
        var nap: Task<Void, Never>?
        var isFlushing = false
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    /// - Parameters:
    ///   - url: of the collector, `http://localhost:4318`; where it names no page, `/v1/traces` is meant. `http:` says what actors and methods are
    ///     called to all who can listen.
    ///   - service: what the program is called, `service.name`.
    ///   - log: told, in a line each, that spans are left out; standard error by default. It must not block.
    /// - Throws: `TransportError` with the code `addressInvalid` for another kind of URL.
    public convenience init(
        url: String, service: String = "trebuchet", log: @escaping @Sendable (String) -> Void = ServerLog.standardError
    ) throws(TransportError) {
        try self.init(url: url, service: service, gathering: .seconds(1), log: log)
    }

    init(
        url: String, service: String = "trebuchet", gathering: Duration, log: @escaping @Sendable (String) -> Void
    ) throws(TransportError) {
        do throws(FetchError) {
            let address = try HTTPAddress(url, plainAnywhere: true)
            let root = url.hasSuffix("/") ? String(url.dropLast()) : url
            self.address = address.isRoot ? try HTTPAddress(root + "/v1/traces", plainAnywhere: true) : address
        } catch {
            throw TransportError(.addressInvalid, error.description)
        }
        self.service = service
        self.gathering = gathering
        self.log = log
    }

    /// Spans that were handed to the collector, and that were left out.
    public var counts: (sent: Int, leftOut: Int) { state.withLock { ($0.sent, $0.left) } }

    /// Told by the server that it listens to.
    public func hear(_ event: ServerEvent) {
        if case .spanEnded(let span) = event { add(span) }
    }

    /// Takes a span to send.
    public func add(_ span: TraceSpan) {
        let (mustStart, nap) = state.withLock { state -> (Bool, Task<Void, Never>?) in
            guard state.spans.count < Self.most else {
                state.left += 1
                state.unsaid += 1
                return (false, nil)
            }
            state.spans.append(span)
            defer { state.isSending = true }
            return (!state.isSending, state.spans.count >= Self.batch ? state.nap : nil)
        }
        nap?.cancel()
        if mustStart { Task.detached { await self.sendAll() } }
    }

    /// Returns when all spans so far were sent or left out: a collector that is away holds it up for 10 seconds a batch at most, and the
    /// first batch that fails ends it for all that wait.
    public func flush() async {
        await withCheckedContinuation { continuation in
            let nap = state.withLock { state -> Task<Void, Never>?? in
                guard state.isSending else { return .none }
                state.isFlushing = true
                state.waiting.append(continuation)
                return .some(state.nap)
            }
            if let nap { nap?.cancel() } else { continuation.resume() }
        }
    }

    // MARK: Sending

    private func sendAll() async {
        while true {
            await gather()
            let spans = state.withLock { state in
                let spans = Array(state.spans.prefix(Self.batch))
                state.spans.removeFirst(spans.count)
                return spans
            }
            if !spans.isEmpty { await send(spans) }
            let done = state.withLock { state -> [CheckedContinuation<Void, Never>]? in
                guard state.spans.isEmpty else { return nil }
                (state.isSending, state.isFlushing) = (false, false)
                defer { state.waiting = [] }
                return state.waiting
            }
            guard let done else { continue }
            for waiting in done { waiting.resume() }
            return
        }
    }

    /// Waits for more, unless there is enough.
    private func gather() async {
        let nap = state.withLock { state -> Task<Void, Never>? in
            guard state.spans.count < Self.batch, !state.isFlushing else { return nil }
            let gathering = gathering
            let nap = Task { _ = try? await Task.sleep(for: gathering) }
            state.nap = nap
            return nap
        }
        await nap?.value
        state.withLock { $0.nap = nil }
    }

    private func send(_ spans: [TraceSpan]) async {
        let problem: String?
        do {
            let reply = try await HTTPFetch.post(OTLPText.json(spans, service: service), to: address)
            problem = (200..<300).contains(reply.status) ? nil : "it answers \(reply.status)"
        } catch let error as TransportError {
            problem = error.message
        } catch {
            problem = "\(error)"
        }
        let unsaid = state.withLock { state in
            defer { state.unsaid = 0 }
            guard problem != nil else {
                state.sent += spans.count
                return state.unsaid
            }
            var lost = spans.count
            // Who ends does not wait for the same answer again and again.
            if state.isFlushing {
                lost += state.spans.count
                state.spans = []
            }
            state.left += lost
            return state.unsaid + lost
        }
        guard unsaid > 0 else { return }
        let reason = problem ?? "they came faster than it takes them"
        log("\(unsaid) spans were not sent to \(address): \(LogLine.of(reason))")
    }
}
