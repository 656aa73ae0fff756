import Foundation
import Transfers
import Transports
import Trebuchet

/// The responses of a server's admin endpoint, at two times.
struct Examination: Sendable {
    /// One response of `/metrics`.
    struct Scrape: Sendable {
        let page: MetricsPage
        /// The local time at the middle of the request, in seconds since 1970, and half of the duration of the request.
        let time: Double
        let uncertainty: Double
    }

    /// The error of a server whose endpoint does not answer usefully.
    struct Unanswered: Error, CustomStringConvertible { let description: String }

    let server: String
    /// The reason why the endpoint is not usable; nil if it responds.
    var failure: String?
    /// The text of `/livez` if it fails.
    var livenessProblem: String?
    /// The failed checks of `/readyz?verbose`, by name.
    var failedChecks: [(name: String, reason: String)] = []
    var first: Scrape?
    var second: Scrape?

    init(of server: String) { self.server = server }

    /// Asks an endpoint.
    ///
    /// - Parameters:
    ///   - interval: the time between the two reads of the metrics.
    ///   - timeout: the time limit of each request.
    static func run(
        _ server: String, token: String?, interval: Duration, timeout: Duration
    ) async throws -> Examination {
        var examination = Examination(of: server)
        do {
            let client = AdminEndpointClient(base: server, token: token, timeout: timeout)
            let alive = try await client.get("/livez")
            if alive.status != 200 { examination.livenessProblem = alive.text }
            let ready = try await client.get("/readyz?verbose")
            examination.failedChecks = checks(ready.text)
            if ready.status != 200, examination.failedChecks.isEmpty {
                throw Unanswered(description: "/readyz?verbose returned status \(ready.status): \(ready.text)")
            }
            examination.first = try await client.scrape()
            try await Task.sleep(for: interval)
            examination.second = try await client.scrape()
        } catch let error as TransportError {
            examination.failure = error.message
        } catch let error as Unanswered {
            examination.failure = error.description
        }
        return examination
    }

    /// Parses lines such as `[-] store: the last write failed`.
    static func checks(_ text: String) -> [(name: String, reason: String)] {
        text.split(separator: "\n").compactMap { line in
            guard line.hasPrefix("[-] "), let colon = line.firstIndex(of: ":") else { return nil }
            let reason = line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
            return (String(line[..<colon].dropFirst(4)), reason)
        }
    }
}

/// A client of an admin endpoint.
private struct AdminEndpointClient {
    private static let maximumSize = 64 << 20

    let base: String
    let token: String?
    let timeout: Duration

    func get(_ path: String) async throws -> (status: Int, text: String) {
        let reply = try await HTTPTransfer.get(
            HTTPEndpoint(base + path), bearer: token, maximumSize: Self.maximumSize, timeout: timeout)
        guard reply.status != 401, reply.status != 403 else {
            throw RejectedToken(
                description:
                    "\(base) rejected the request with status \(reply.status): pass the token of --admin-token-file with "
                    + "--token-file FILE or TREBUCHET_ADMIN_TOKEN")
        }
        guard [200, 503].contains(reply.status) else {
            throw Examination.Unanswered(
                description: "\(path) returned status \(reply.status); this is not the address of serve --admin")
        }
        return (reply.status, String(decoding: reply.body.prefix(65_536), as: UTF8.self))
    }

    func scrape() async throws -> Examination.Scrape {
        let start = Date().timeIntervalSince1970
        let reply = try await HTTPTransfer.get(
            HTTPEndpoint(base + "/metrics"), bearer: token, maximumSize: Self.maximumSize, timeout: timeout)
        let end = Date().timeIntervalSince1970
        let text = String(decoding: reply.body, as: UTF8.self)
        guard reply.status == 200 else {
            throw Examination.Unanswered(
                description: "/metrics returned status \(reply.status): \(text.prefix(512))")
        }
        return Examination.Scrape(
            page: MetricsPage(text), time: (start + end) / 2, uncertainty: max(0, end - start) / 2)
    }
}

/// The error of a request without the token of the endpoint.
struct RejectedToken: Error, CustomStringConvertible { let description: String }
