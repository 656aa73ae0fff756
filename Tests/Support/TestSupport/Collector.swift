internal import Foundation
internal import Glibc
package import Platform
internal import Synchronization

/// A span collector: an HTTP server that records requests, one connection after another.
package final class Collector: Sendable {
    package enum Behavior: Sendable {
        case answers(Int)
        /// Sends its response byte by byte, with pauses, as long as the client waits.
        case trickles
        /// Sends an endless response head.
        case floods
        /// Accepts all input and sends nothing.
        case silent
    }

    struct DidNotStart: Error {}

    private let descriptor: Int32
    package let port: Int
    private let bodies = Mutex<[Data]>([])
    private let heads = Mutex<[String]>([])
    /// The first bytes of each connection.
    private let beginnings = Mutex<[[UInt8]]>([])
    private let gate: ThreadSemaphore?
    private let manner: Behavior

    /// - Parameter gate: the semaphore that it waits for before each response.
    package init(_ manner: Behavior = .answers(200), gate: ThreadSemaphore? = nil) throws {
        self.manner = manner
        self.gate = gate
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let descriptor = descriptor
        let isBound = withUnsafeMutablePointer(to: &name) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, size) == 0 && getsockname(descriptor, $0, &size) == 0
            }
        }
        guard isBound, listen(descriptor, 16) == 0 else { throw DidNotStart() }
        port = Int(UInt16(bigEndian: name.sin_port))
        let collector = self
        Thread.detachNewThread { collector.serve() }
    }

    package var url: String { "http://127.0.0.1:\(port)" }
    /// The heads of completely received requests.
    package var requests: [String] { heads.withLock { $0 } }
    /// The first bytes of each connection.
    package var firstBytes: [[UInt8]] { beginnings.withLock { $0 } }

    /// All received spans, in order.
    package var spans: [[String: Any]] {
        resourceSpans.flatMap { $0["scopeSpans"] as? [[String: Any]] ?? [] }
            .flatMap { $0["spans"] as? [[String: Any]] ?? [] }
    }

    /// The `resource` member of each export.
    package var resources: [[String: Any]] { resourceSpans.compactMap { $0["resource"] as? [String: Any] } }

    private var resourceSpans: [[String: Any]] {
        bodies.withLock { $0 }.flatMap { body -> [[String: Any]] in
            let object = try? JSONSerialization.jsonObject(with: body) as? [String: Any]
            return object?["resourceSpans"] as? [[String: Any]] ?? []
        }
    }

    /// The attributes of a span, with their values as strings.
    package static func attributes(_ span: [String: Any]?) -> [String: String] {
        var values: [String: String] = [:]
        for attribute in span?["attributes"] as? [[String: Any]] ?? [] {
            guard let key = attribute["key"] as? String, let value = attribute["value"] as? [String: Any] else {
                continue
            }
            values[key] = value["stringValue"] as? String
        }
        return values
    }

    /// To be called once: later the descriptor number may belong to another socket.
    package func stop() { shutdown(descriptor, Int32(SHUT_RDWR)) }

    private func serve() {
        while true {
            let peer = accept(descriptor, nil, nil)
            guard peer >= 0 else { break }
            take(peer)
            close(peer)
        }
        close(descriptor)
    }

    private func take(_ peer: Int32) {
        var bytes = Data()
        var part = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(peer, &part, part.count, 0)
            guard count > 0 else { return }
            if bytes.isEmpty { beginnings.withLock { $0.append(Array(part[..<min(count, 16)])) } }
            bytes.append(contentsOf: part[..<count])
            guard let end = bytes.range(of: Data("\r\n\r\n".utf8)) else { continue }
            let head = String(decoding: bytes[..<end.lowerBound], as: UTF8.self)
            let length = head.firstMatch(of: /Content-Length: (\d+)/).flatMap { Int($0.1) } ?? 0
            guard bytes.count - end.upperBound >= length else { continue }
            gate?.wait()
            heads.withLock { $0.append(head) }
            return answer(peer, Data(bytes[end.upperBound...]))
        }
    }

    private func answer(_ peer: Int32, _ body: Data) {
        switch manner {
        case .answers(let status):
            if status == 200 { bodies.withLock { $0.append(body) } }
            _ = writeText("HTTP/1.1 \(status) Said\r\nContent-Length: 2\r\n\r\n{}", to: peer)
        case .trickles:
            for byte in "HTTP/1.1 200 Said\r\nX: " + String(repeating: "x", count: 100_000) {
                guard writeText("\(byte)", to: peer), !hasDisconnected(peer, within: 20) else { return }
            }
        case .floods:
            let part = String(repeating: "X: " + String(repeating: "x", count: 1_000) + "\r\n", count: 16)
            _ = writeText("HTTP/1.1 200 Said\r\n", to: peer)
            while writeText(part, to: peer) {}
        case .silent:
            while !hasDisconnected(peer, within: 1_000) {}
        }
    }

    private func writeText(_ text: String, to peer: Int32) -> Bool {
        let bytes = Array(text.utf8)
        return send(peer, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count
    }

    /// Returns true if the peer closes the connection within this number of milliseconds.
    private func hasDisconnected(_ peer: Int32, within milliseconds: Int32) -> Bool {
        var question = pollfd(fd: peer, events: Int16(POLLIN), revents: 0)
        guard poll(&question, 1, milliseconds) > 0 else { return false }
        var byte: UInt8 = 0
        return recv(peer, &byte, 1, 0) <= 0
    }
}
