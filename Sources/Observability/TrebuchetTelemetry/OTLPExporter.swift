internal import Synchronization
internal import Transfers
public import Transports
public import Trebuchet
public import TrebuchetActors

/// Exports spans to an OpenTelemetry collector: OTLP over HTTP, in JSON.
///
///     let exporter = try OTLPExporter(url: "http://localhost:4318")
///     server.addEventHandler(exporter)
///     server.setTraceSamplingRatio(0.01)
///     options.onSpanEnd = exporter.export  // of clients in the same program
///
/// Spans are batched for one second or until there are 512, and sent by a separate task. While the collector is slow, up to
/// 4,096 spans wait. Further spans, and batches that the collector does not accept within 10 seconds, are dropped and counted,
/// and a log line states their number. After a failure the exporter pauses for 5 seconds. Calls never wait for the exporter.
public final class OTLPExporter: ServerEventHandler {
    private static let batch = 512
    private static let most = 4_096

    /// The kinds of events that the exporter receives: spans.
    public let kinds: ServerEvent.Kinds = .spans
    private let address: HTTPEndpoint
    private let service: String
    private let instance: String?
    private let timeouts: Timeouts
    private let log: any ServerEventHandler

    /// Time limits of the exporter; tests use shorter ones.
    struct Timeouts {
        /// The time to wait for more spans.
        var gathering = Duration.seconds(1)
        /// The timeout of a request.
        var response = HTTPTransfer.timeout
        /// The pause after a failed batch. It limits requests to an unavailable collector and log lines.
        var afterFailure = Duration.seconds(5)
    }

    /// The queue and counters of the exporter.
    private struct State {
        var spans: [TraceSpan] = []
        /// The number of spans in the batch that is being sent.
        var sendingCount = 0
        var hasFailed = false
        var isSending = false
        var left = 0
        /// The number of dropped spans that no log line has reported.
        var unreported = 0
        var sent = 0
        /// The task of the batching delay; its cancellation ends the delay early.
        var sleep: Task<Void, Never>?
        var isFlushing = false
        /// Continuations of `flush`, by number.
        var waiting: [Int: CheckedContinuation<Void, Never>] = [:]
        var lastNumber = 0
    }

    private let state = Mutex(State())

    /// - Parameters:
    ///   - url: the URL of the collector, `http://localhost:4318`; without a path, `/v1/traces` is used. With `http:` the names
    ///     of actors and methods can be read on the network.
    ///   - service: the name of the program, `service.name`.
    ///   - instance: the name of this process among several, `service.instance.id`: the name of a node. Nil, the default, omits
    ///     it.
    ///   - log: receives a line (`warning`) whenever spans are dropped: a `ConsoleLog` by default.
    /// - Throws: `TransportError` with the code `addressInvalid` for another kind of URL.
    public convenience init(
        url: String, service: String = "trebuchet", instance: String? = nil,
        log: any ServerEventHandler = ConsoleLog()
    ) throws(TransportError) {
        try self.init(url: url, service: service, instance: instance, timeouts: Timeouts(), log: log)
    }

    init(
        url: String, service: String = "trebuchet", instance: String? = nil, timeouts: Timeouts,
        log: any ServerEventHandler
    ) throws(TransportError) {
        let address = try HTTPEndpoint(url, allowsPlaintext: true)
        let root = url.hasSuffix("/") ? String(url.dropLast()) : url
        self.address = address.isRoot ? try HTTPEndpoint(root + "/v1/traces", allowsPlaintext: true) : address
        self.service = service
        self.instance = instance
        self.timeouts = timeouts
        self.log = log
    }

    /// Numbers of spans since the exporter was created.
    public struct SpanCounts: Sendable, Hashable {
        /// The number of spans that the collector has accepted.
        public let sent: Int
        /// The number of spans that were dropped.
        public let dropped: Int
    }

    /// The numbers of spans that the collector accepted and that were dropped.
    public var counts: SpanCounts { state.withLock { SpanCounts(sent: $0.sent, dropped: $0.left) } }

    /// Receives an event from the server that the exporter was added to.
    public func handle(_ event: ServerEvent) {
        if case .spanEnded(let span) = event { export(span) }
    }

    /// Adds a span to the queue.
    public func export(_ span: TraceSpan) {
        let (mustStart, sleep) = state.withLock { state -> (Bool, Task<Void, Never>?) in
            guard state.spans.count < Self.most else {
                state.left += 1
                state.unreported += 1
                return (false, nil)
            }
            state.spans.append(span)
            defer { state.isSending = true }
            return (!state.isSending, state.spans.count >= Self.batch && !state.hasFailed ? state.sleep : nil)
        }
        sleep?.cancel()
        if mustStart { Task.detached { await self.sendAll() } }
    }

    /// Returns when all spans so far were sent or dropped.
    ///
    /// - Parameter patience: spans that are not sent within it are dropped, and so are all others once a batch fails.
    public func flush(timeout patience: Duration = .seconds(5)) async {
        var timer: Task<Void, Never>?
        await withCheckedContinuation { continuation in
            let (number, sleep) = state.withLock { state -> (Int?, Task<Void, Never>?) in
                guard state.isSending else { return (nil, nil) }
                state.isFlushing = true
                state.lastNumber += 1
                state.waiting[state.lastNumber] = continuation
                return (state.lastNumber, state.sleep)
            }
            guard let number else { return continuation.resume() }
            sleep?.cancel()
            timer = Task {
                if (try? await Task.sleep(for: patience)) != nil { self.abandonFlush(number) }
            }
        }
        timer?.cancel()
    }

    /// Resumes a waiting `flush` and drops the spans that were not sent.
    private func abandonFlush(_ number: Int) {
        let (waiting, unreported) = state.withLock { state -> (CheckedContinuation<Void, Never>?, Int) in
            guard let waiting = state.waiting.removeValue(forKey: number) else { return (nil, 0) }
            let lost = state.spans.count + state.sendingCount
            (state.spans, state.sendingCount) = ([], 0)
            state.left += lost
            defer { state.unreported = 0 }
            return (waiting, state.unreported + lost)
        }
        guard let waiting else { return }
        logDroppedSpans(unreported, "shutdown timed out")
        waiting.resume()
    }

    // MARK: Sending

    private func sendAll() async {
        while true {
            await gather()
            let spans = state.withLock { state in
                let spans = Array(state.spans.prefix(Self.batch))
                state.spans.removeFirst(spans.count)
                state.sendingCount = spans.count
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

    /// Waits for more spans, unless a batch is complete.
    private func gather() async {
        let timeouts = timeouts
        let sleep = state.withLock { state -> Task<Void, Never>? in
            guard !state.isFlushing, state.hasFailed || state.spans.count < Self.batch else { return nil }
            let time = state.hasFailed ? timeouts.afterFailure : timeouts.gathering
            let sleep = Task { _ = try? await Task.sleep(for: time) }
            state.sleep = sleep
            return sleep
        }
        await sleep?.value
        state.withLock { $0.sleep = nil }
    }

    private func send(_ spans: [TraceSpan]) async {
        let problem: String?
        do throws(TransportError) {
            let reply = try await HTTPTransfer.post(
                OTLPText.json(spans, service: service, instance: instance), to: address, timeout: timeouts.response)
            problem = (200..<300).contains(reply.status) ? nil : "the collector responded with \(reply.status)"
        } catch {
            problem = error.message
        }
        let unreported = state.withLock { state in
            defer { state.unreported = 0 }
            state.hasFailed = problem != nil
            // The count is 0 if a `flush` timed out meanwhile.
            let count = state.sendingCount
            state.sendingCount = 0
            guard problem != nil else {
                state.sent += count
                return state.unreported
            }
            var lost = count
            // A pending `flush` does not retry a collector that has just failed.
            if state.isFlushing {
                lost += state.spans.count
                state.spans = []
            }
            state.left += lost
            return state.unreported + lost
        }
        logDroppedSpans(unreported, problem ?? "spans were recorded faster than the collector accepts them")
    }

    private func logDroppedSpans(_ count: Int, _ reason: String) {
        guard count > 0 else { return }
        let spans = count == 1 ? "1 span was" : "\(count) spans were"
        let line = "\(spans) not sent to \(address.withoutQuery): \(LogLine.of(reason))"
        log.handle(.logMessage(.warning, line))
    }
}
