import Foundation
import Glibc
import Platform
import Synchronization

/// A collector of spans: an HTTP server that keeps what it is sent.
final class Collector: Sendable {
    struct DidNotStart: Error {}

    private let descriptor: Int32
    let port: Int
    private let bodies = Mutex<[Data]>([])
    private let heads = Mutex<[String]>([])
    private let gate: ThreadSemaphore?
    private let status: Int

    /// - Parameters:
    ///   - status: what it answers.
    ///   - gate: what it waits for before each answer.
    init(status: Int = 200, gate: ThreadSemaphore? = nil) throws {
        self.status = status
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

    var url: String { "http://127.0.0.1:\(port)" }
    var requests: [String] { heads.withLock { $0 } }

    /// All spans that it has, in their order.
    var spans: [[String: Any]] {
        bodies.withLock { $0 }.flatMap { body -> [[String: Any]] in
            let object = try? JSONSerialization.jsonObject(with: body) as? [String: Any]
            let resources = object?["resourceSpans"] as? [[String: Any]] ?? []
            return resources.flatMap { $0["scopeSpans"] as? [[String: Any]] ?? [] }
                .flatMap { $0["spans"] as? [[String: Any]] ?? [] }
        }
    }

    /// The attributes of a span, with texts as values.
    static func attributes(_ span: [String: Any]?) -> [String: String] {
        var values: [String: String] = [:]
        for attribute in span?["attributes"] as? [[String: Any]] ?? [] {
            guard let key = attribute["key"] as? String, let value = attribute["value"] as? [String: Any] else {
                continue
            }
            values[key] = value["stringValue"] as? String
        }
        return values
    }

    /// Once: its number may be another socket's afterwards.
    func stop() { shutdown(descriptor, Int32(SHUT_RDWR)) }

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
            bytes.append(contentsOf: part[..<count])
            guard let end = bytes.range(of: Data("\r\n\r\n".utf8)) else { continue }
            let head = String(decoding: bytes[..<end.lowerBound], as: UTF8.self)
            let length = head.firstMatch(of: /Content-Length: (\d+)/).flatMap { Int($0.1) } ?? 0
            guard bytes.count - end.upperBound >= length else { continue }
            gate?.wait()
            heads.withLock { $0.append(head) }
            if status == 200 { bodies.withLock { $0.append(Data(bytes[end.upperBound...])) } }
            let answer = Array("HTTP/1.1 \(status) Said\r\nContent-Length: 2\r\n\r\n{}".utf8)
            _ = send(peer, answer, answer.count, Int32(MSG_NOSIGNAL))
            return
        }
    }
}
