import Commands
import Foundation
import Transfers
import Trebuchet

/// A client of a server's inspector, for `inspect` and `top`.
struct InspectorClient: Sendable {
    static let options = [
        OptionSpec(
            "--url", "URL", "the link that 'serve --inspector' printed; it may contain the token after #token="),
        OptionSpec(
            "--token", "TOKEN",
            "the token of the inspector; visible to local users, so prefer TREBUCHET_INSPECTOR_TOKEN"),
        CommandTimeout.option,
    ]
    /// The maximum size of a response in bytes; it contains a state of an actor.
    private static let maximumSize = 64 << 20

    /// The error of a request that the inspector rejected.
    struct RequestRejected: Error, CustomStringConvertible { let description: String }

    private let base: String
    private let token: String

    init(_ arguments: ParsedArguments) throws(UsageError) {
        guard let url = arguments.string("--url") else {
            throw UsageError(
                "the inspector is missing: pass --url URL, the link that 'trebuchet serve --inspector' printed")
        }
        let parts = url.split(separator: "#", maxSplits: 1).map(String.init)
        let inLink = parts.count > 1 && parts[1].hasPrefix("token=") ? String(parts[1].dropFirst(6)) : nil
        guard
            let token = arguments.string("--token") ?? inLink
                ?? ProcessInfo.processInfo.environment["TREBUCHET_INSPECTOR_TOKEN"],
            !token.isEmpty, token.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else {
            throw UsageError(
                "the inspector requires a token: pass --token, TREBUCHET_INSPECTOR_TOKEN, or the whole link")
        }
        var base = parts.first ?? ""
        while base.hasSuffix("/") { base.removeLast() }
        do {
            _ = try HTTPEndpoint(base + "/")
        } catch {
            throw UsageError("--url: \(error)")
        }
        self.base = base
        self.token = token
    }

    /// Returns the unparsed response.
    ///
    /// - Parameter query: names and values; entries without a value are omitted.
    func get(_ path: String, _ query: [(name: String, value: String?)] = []) async throws -> [UInt8] {
        let parts = query.compactMap { entry in entry.value.map { "\(entry.name)=\(Self.encoded($0))" } }
        let target = "/inspect/\(path)" + (parts.isEmpty ? "" : "?" + parts.joined(separator: "&"))
        CommandTimeout.current?.start(awaiting: "response of the inspector")
        defer { CommandTimeout.current?.stop() }
        let reply: TransferResponse
        do {
            reply = try await Self.fetch(HTTPEndpoint(base + target), bearer: token)
        } catch let error as TransportError where error.code == .refused {
            throw RequestRejected(
                description: "\(error.message); is a server with --inspector running there? start one with: "
                    + "trebuchet serve --inspector")
        }
        guard reply.status == 200 else {
            let reason =
                LenientJSON(reply.body)?["error"].text ?? String(decoding: reply.body.prefix(512), as: UTF8.self)
            let remedy =
                reply.status == 401
                ? "; pass the link that the server printed at its last start: each start has a new token, unless the "
                    + "server has --inspector-token-file"
                : ""
            throw RequestRejected(
                description: "the inspector at \(base) returned status \(reply.status): "
                    + "\(LogLine.of(reason.trimmed))\(remedy)")
        }
        return reply.body
    }

    /// Returns the response, or throws when the task is cancelled, without waiting for the server.
    private static func fetch(_ endpoint: HTTPEndpoint, bearer: String) async throws -> TransferResponse {
        let (replies, reply) = AsyncThrowingStream.makeStream(of: TransferResponse.self)
        Task {
            do {
                reply.yield(try await HTTPTransfer.get(endpoint, bearer: bearer, maximumSize: maximumSize))
            } catch {
                reply.finish(throwing: error)
            }
        }
        for try await reply in replies { return reply }
        throw CancellationError()
    }

    func fetchJSON(_ path: String, _ query: [(name: String, value: String?)] = []) async throws -> LenientJSON {
        guard let shown = LenientJSON(try await get(path, query)) else {
            throw RequestRejected(
                description:
                    "the inspector at \(base) returned invalid JSON; use the trebuchet program of the server's version")
        }
        return shown
    }

    /// Percent-encodes all but the unreserved characters of URLs (RFC 3986 §2.3).
    static func encoded(_ text: String) -> String {
        text.utf8.map { byte in
            let isPlain = Character(UnicodeScalar(byte)).isASCIIWord || "-._~".utf8.contains(byte)
            let digits = String(byte, radix: 16, uppercase: true)
            return isPlain ? String(UnicodeScalar(byte)) : "%" + (digits.count < 2 ? "0" : "") + digits
        }.joined()
    }
}

extension Character {
    fileprivate var isASCIIWord: Bool { isASCII && (isLetter || isNumber) }
}

extension String {
    fileprivate var trimmed: String { trimmingCharacters(in: .whitespacesAndNewlines) }
}

/// Untrusted JSON: a missing member or a wrong type reads as empty.
struct LenientJSON {
    private let value: Any?

    init?(_ json: [UInt8]) {
        guard let value = try? JSONSerialization.jsonObject(with: Data(json)) else { return nil }
        self.value = value
    }

    private init(value: Any?) { self.value = value }

    subscript(name: String) -> LenientJSON { LenientJSON(value: (value as? [String: Any])?[name]) }

    var text: String? { value as? String }
    var number: Double { value as? Double ?? (value as? Int).map { Double($0) } ?? 0 }
    var count: Int { Int(exactly: number.rounded()) ?? 0 }
    var isThere: Bool { value != nil && !(value is NSNull) }
    var isTrue: Bool { (value as? Bool) == true }
    var list: [LenientJSON] { (value as? [Any])?.map { LenientJSON(value: $0) } ?? [] }
    var names: [String] { (value as? [String: Any])?.keys.sorted() ?? [] }

    /// The value as JSON on one line.
    var json: String {
        guard let value, !(value is NSNull) else { return "null" }
        let options: JSONSerialization.WritingOptions = [.fragmentsAllowed, .sortedKeys, .withoutEscapingSlashes]
        let data = try? JSONSerialization.data(withJSONObject: value, options: options)
        return data.map { String(decoding: $0, as: UTF8.self) } ?? ""
    }
}
