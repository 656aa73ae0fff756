import Bytes
import Commands
import Networking
import WebSockets

/// Measures a WebSocket echo, with a bare echo of equal size in the same run as the baseline, and both over TLS. One load
/// drives all of them.
struct EchoRounds {
    let size: Int
    let connections: Int
    let inFlight: Int
    let rounds: Int
    let seconds: Double
    /// The TLS settings of the runs over TLS; nil omits these runs.
    let tls: TLSServerSettings?

    /// The rates and costs of the rounds.
    private struct EchoMeasurements {
        private(set) var rates: [Double] = []
        private(set) var costs: [Double] = []
        var rate: Double { rates.max() ?? 0 }
        var cost: Double { costs.min() ?? 0 }

        mutating func add(_ outcome: BareLoad.Outcome) {
            rates.append(outcome.rate)
            costs.append(outcome.cost)
        }
    }

    /// Alternates the measurements and reports the best of each, so that other load affects all. Server and load have separate
    /// cores if there are two.
    func run() async throws -> BenchReport {
        let cores = Cores.ofProcess
        let usesSeparateCores = cores.count > 1
        if usesSeparateCores { Cores.keepThisProcess(on: Array(cores.dropFirst())) }
        defer { if usesSeparateCores { Cores.keepThisProcess(on: cores) } }
        let core = usesSeparateCores ? [cores[0]] : nil
        var (bare, plain, secure) = (EchoMeasurements(), EchoMeasurements(), EchoMeasurements())
        for _ in 0..<rounds {
            bare.add(try await measure(["bare-echo"], BareLoad.Exchange(size: size), core))
            plain.add(try await measure(["echo-server"], webSocket, core))
            guard let tls else { continue }
            var exchange = webSocket
            exchange.tls = try .client(TLSClientSettings(trust: .insecure))
            let options = ["--tls-cert", tls.certificateChainFile, "--tls-key", tls.privateKeyFile]
            secure.add(try await measure(["echo-server"] + options, exchange, core))
        }
        var report = BenchReport()
        report.add("connections", connections)
        report.add("in_flight", inFlight)
        report.add("rounds", rounds)
        report.add("message_bytes", size)
        report.add("messages_per_second", plain.rate)
        report.add("server_cpu_ns", plain.cost)
        report.add("bare_messages_per_second", bare.rate)
        report.add("bare_cpu_ns", bare.cost)
        report.add("percent_of_bare", 100 * plain.rate / bare.rate)
        report.add("percent_of_bare_by_cpu", 100 * bare.cost / plain.cost)
        guard tls != nil else { return report }
        report.add("tls_messages_per_second", secure.rate)
        report.add("tls_cpu_ns", secure.cost)
        report.add("tls_percent_of_plain", 100 * secure.rate / plain.rate)
        report.add("tls_percent_of_plain_by_cpu", 100 * plain.cost / secure.cost)
        return report
    }

    private func measure(
        _ command: [String], _ exchange: BareLoad.Exchange, _ cores: [Int]?
    ) async throws -> BareLoad.Outcome {
        let server = try MeasuredServer(command: ["bench"] + command + ["--port", "0"], cores: cores)
        defer { server.stop() }
        return try await BareLoad(exchange, inFlight: inFlight).run(
            at: server, connections: connections, seconds: seconds)
    }

    /// A masked text frame to the server, and the same without a mask back.
    private var webSocket: BareLoad.Exchange {
        var exchange = BareLoad.Exchange(size: size)
        exchange.message = frame(exchange.answer, maskingKey: 0x9E37_79B9)
        exchange.answer = frame(exchange.answer)
        exchange.opening =
            "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        return exchange
    }

    private func frame(_ payload: [UInt8], maskingKey: UInt32? = nil) -> [UInt8] {
        var buffer = ByteBuffer()
        payload.withUnsafeBytes { FrameEncoder.append(.text, $0, maskingKey: maskingKey, to: &buffer) }
        return Array(buffer.bytes)
    }
}
