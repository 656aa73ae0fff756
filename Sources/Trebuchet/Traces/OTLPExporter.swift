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
/// Spans are gathered for a second, or until there are 512, and sent by a task of its own. While a collector is slow up to 4,096 wait. What comes
/// beyond that, and what it does not take within 10 seconds, is left out and counted, and a line says so; then it is left alone for 5 seconds.
/// Nobody waits for it.
public final class OTLPExporter: ServerListener {
    private static let batch = 512
    private static let most = 4_096

    /// Parts of traces.
    public let kinds: ServerEvent.Kinds = .spans
    private let address: HTTPAddress
    private let service: String
    private let instance: String?
    private let pace: Pace
    private let log: @Sendable (String) -> Void

    /// How long it waits for what; tests have less time.
    struct Pace {
        /// For more spans.
        var gathering = Duration.seconds(1)
        /// For a connection, and then for an answer.
        var answer = HTTPFetch.patience
        /// After a batch that failed, so that who is away is not asked again and again, nor the log filled.
        var afterFailure = Duration.seconds(5)
    }

    private struct State {
        var spans: [TraceSpan] = []
        /// Spans of the batch that is being sent.
        var onTheWay = 0
        var hasFailed = false
        var isSending = false
        var left = 0
        /// What is left out and no line has said.
        var unsaid = 0
        var sent = 0
        /// Ends the gathering early.
        var nap: Task<Void, Never>?
        var isFlushing = false
        /// Those who wait for the end, by their numbers.
        var waiting: [Int: CheckedContinuation<Void, Never>] = [:]
        var lastNumber = 0
    }

    private let state = Mutex(State())

    /// - Parameters:
    ///   - url: of the collector, `http://localhost:4318`; where it names no page, `/v1/traces` is meant. `http:` says what actors and methods are
    ///     called to all who can listen.
    ///   - service: what the program is called, `service.name`.
    ///   - instance: what this one of several of its processes is called, `service.instance.id`: the name of a node. Nil, the default, leaves it out.
    ///   - log: told, in a line each, that spans are left out; standard error by default. It must not block.
    /// - Throws: `TransportError` with the code `addressInvalid` for another kind of URL.
    public convenience init(
        url: String, service: String = "trebuchet", instance: String? = nil,
        log: @escaping @Sendable (String) -> Void = ServerLog.standardError
    ) throws(TransportError) {
        try self.init(url: url, service: service, instance: instance, pace: Pace(), log: log)
    }

    init(
        url: String, service: String = "trebuchet", instance: String? = nil, pace: Pace,
        log: @escaping @Sendable (String) -> Void
    ) throws(TransportError) {
        do throws(FetchError) {
            let address = try HTTPAddress(url, plainAnywhere: true)
            let root = url.hasSuffix("/") ? String(url.dropLast()) : url
            self.address = address.isRoot ? try HTTPAddress(root + "/v1/traces", plainAnywhere: true) : address
        } catch {
            throw TransportError(.addressInvalid, error.description)
        }
        self.service = service
        self.instance = instance
        self.pace = pace
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
            return (!state.isSending, state.spans.count >= Self.batch && !state.hasFailed ? state.nap : nil)
        }
        nap?.cancel()
        if mustStart { Task.detached { await self.sendAll() } }
    }

    /// Returns when all spans so far were sent or left out.
    ///
    /// - Parameter patience: what is not sent by then is left out, and so are all others once a batch fails.
    public func flush(within patience: Duration = .seconds(5)) async {
        var timer: Task<Void, Never>?
        await withCheckedContinuation { continuation in
            let (number, nap) = state.withLock { state -> (Int?, Task<Void, Never>?) in
                guard state.isSending else { return (nil, nil) }
                state.isFlushing = true
                state.lastNumber += 1
                state.waiting[state.lastNumber] = continuation
                return (state.lastNumber, state.nap)
            }
            guard let number else { return continuation.resume() }
            nap?.cancel()
            timer = Task {
                if (try? await Task.sleep(for: patience)) != nil { self.giveUp(number) }
            }
        }
        timer?.cancel()
    }

    /// Who waits does so no longer.
    private func giveUp(_ number: Int) {
        let (waiting, unsaid) = state.withLock { state -> (CheckedContinuation<Void, Never>?, Int) in
            guard let waiting = state.waiting.removeValue(forKey: number) else { return (nil, 0) }
            let lost = state.spans.count + state.onTheWay
            (state.spans, state.onTheWay) = ([], 0)
            state.left += lost
            defer { state.unsaid = 0 }
            return (waiting, state.unsaid + lost)
        }
        guard let waiting else { return }
        say(unsaid, "it took too long at the end")
        waiting.resume()
    }

    // MARK: Sending

    private func sendAll() async {
        while true {
            await gather()
            let spans = state.withLock { state in
                let spans = Array(state.spans.prefix(Self.batch))
                state.spans.removeFirst(spans.count)
                state.onTheWay = spans.count
                return spans
            }
            if !spans.isEmpty { await send(spans) }
            let done = state.withLock { state -> [CheckedContinuation<Void, Never>]? in
                guard state.spans.isEmpty else { return nil }
                (state.isSending, state.isFlushing) = (false, false)
                defer { state.waiting = [:] }
                return Array(state.waiting.values)
            }
            guard let done else { continue }
            for waiting in done { waiting.resume() }
            return
        }
    }

    /// Waits for more, unless there is enough.
    private func gather() async {
        let pace = pace
        let nap = state.withLock { state -> Task<Void, Never>? in
            guard !state.isFlushing, state.hasFailed || state.spans.count < Self.batch else { return nil }
            let time = state.hasFailed ? pace.afterFailure : pace.gathering
            let nap = Task { _ = try? await Task.sleep(for: time) }
            state.nap = nap
            return nap
        }
        await nap?.value
        state.withLock { $0.nap = nil }
    }

    private func send(_ spans: [TraceSpan]) async {
        let problem: String?
        do {
            let reply = try await HTTPFetch.post(
                OTLPText.json(spans, service: service, instance: instance), to: address, patience: pace.answer)
            problem = (200..<300).contains(reply.status) ? nil : "it answers \(reply.status)"
        } catch let error as TransportError {
            problem = error.message
        } catch {
            problem = "\(error)"
        }
        let unsaid = state.withLock { state in
            defer { state.unsaid = 0 }
            state.hasFailed = problem != nil
            // Nothing any more where somebody gave up meanwhile.
            let count = state.onTheWay
            state.onTheWay = 0
            guard problem != nil else {
                state.sent += count
                return state.unsaid
            }
            var lost = count
            // Who ends does not wait for the same answer again and again.
            if state.isFlushing {
                lost += state.spans.count
                state.spans = []
            }
            state.left += lost
            return state.unsaid + lost
        }
        say(unsaid, problem ?? "they came faster than it takes them")
    }

    private func say(_ count: Int, _ reason: String) {
        guard count > 0 else { return }
        let spans = count == 1 ? "1 span was" : "\(count) spans were"
        log("\(spans) not sent to \(address.shown): \(LogLine.of(reason))")
    }
}
