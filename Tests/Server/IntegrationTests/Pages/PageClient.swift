import Foundation
import Glibc
import Networking
import Platform
import Testing
import Transports

/// One connection for page requests, and its responses.
final class PageClient: Sendable {
    struct Reply: Sendable {
        var status = 0
        var fields: [String: String] = [:]
        var body: [UInt8] = []
        var text: String { String(decoding: body, as: UTF8.self) }
    }

    struct ConnectionEnded: Error {}

    private let descriptor: Int32

    /// - Parameter address: the server's address; IPv4.
    init(_ address: SocketAddress, receiveBuffer: Int32? = nil) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var limit = timeval(tv_sec: 40, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        if var receiveBuffer { setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &receiveBuffer, 4) }
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_port = UInt16(address.port).bigEndian
        inet_pton(AF_INET, address.host, &name.sin_addr)
        let descriptor = descriptor
        let status = withUnsafePointer(to: &name) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        if status != 0 { throw ConnectionEnded() }
    }

    deinit { close(descriptor) }

    /// Away from the pool, which has few threads.
    func get(_ path: String, _ headers: [String: String] = [:], method: String = "GET", host: String = "localhost")
        async throws -> Reply
    {
        try await onThread { [self] in
            try ask(path, headers, method: method, host: host)
            return try receive(isHead: method == "HEAD")
        }
    }

    /// Sends a request without reading.
    func ask(_ path: String, _ headers: [String: String] = [:], method: String = "GET", host: String = "localhost")
        throws
    {
        let lines = headers.map { "\($0): \($1)\r\n" }.joined()
        let bytes = Array("\(method) \(path) HTTP/1.1\r\nHost: \(host)\r\n\(lines)\r\n".utf8)
        let sent = bytes.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
        guard sent == bytes.count else { throw ConnectionEnded() }
    }

    /// Sends a request with a body, and returns the response.
    func post(
        _ path: String, _ body: String, _ headers: [String: String] = [:], method: String = "POST",
        host: String = "localhost"
    ) async throws -> Reply {
        try await onThread { [self] in
            try write(PageClient.request(path, body, headers, method: method, host: host))
            return try receive(isHead: false)
        }
    }

    /// The text of a request with a body.
    static func request(
        _ path: String, _ body: String, _ headers: [String: String] = [:], method: String = "POST",
        host: String = "localhost"
    ) -> String {
        let lines = headers.map { "\($0): \($1)\r\n" }.joined()
        return
            "\(method) \(path) HTTP/1.1\r\nHost: \(host)\r\nContent-Length: \(body.utf8.count)\r\n\(lines)\r\n\(body)"
    }

    /// Sends text without reading.
    func write(_ text: String) throws {
        let bytes = Array(text.utf8)
        var done = 0
        while done < bytes.count {
            let sent = bytes[done...].withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard sent > 0 else { throw ConnectionEnded() }
            done += sent
        }
    }

    /// The next response.
    func reply() async throws -> Reply { try await onThread { [self] in try receive(isHead: false) } }

    /// The head of the next response.
    func head() async throws -> Reply { try await onThread { [self] in try receiveHead() } }

    /// The next chunk of a body in the chunked transfer coding; empty at its end.
    func chunk() async throws -> [UInt8] { try await onThread { [self] in try receiveChunk() } }

    /// The rest of a body that ends with the connection.
    func rest() async -> String {
        await onThread { [self] in
            var (text, byte) = ([UInt8](), UInt8(0))
            while recv(descriptor, &byte, 1, 0) == 1 { text.append(byte) }
            return String(decoding: text, as: UTF8.self)
        }
    }

    /// Whether the server ends the connection without another response.
    func ends() async -> Bool {
        await onThread { [self] in
            var byte: UInt8 = 0
            return recv(descriptor, &byte, 1, 0) == 0
        }
    }

    /// Ends the connection, orderly or with a reset.
    func disconnect(reset: Bool = false) {
        if reset {
            var option = linger(l_onoff: 1, l_linger: 0)
            setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
            // The socket that remains refers to nothing.
            let other = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
            dup2(other, descriptor)
            close(other)
        } else {
            shutdown(descriptor, Int32(SHUT_RDWR))
        }
    }

    private func receive(isHead: Bool) throws -> Reply {
        var reply = try receiveHead()
        guard !isHead else { return reply }
        guard reply.fields["transfer-encoding"] == "chunked" else {
            reply.body = try take(reply.fields["content-length"].flatMap { Int($0) } ?? 0)
            return reply
        }
        var chunk = try receiveChunk()
        while !chunk.isEmpty {
            reply.body += chunk
            chunk = try receiveChunk()
        }
        return reply
    }

    private func receiveChunk() throws -> [UInt8] {
        var size: [UInt8] = []
        while !size.suffix(2).elementsEqual("\r\n".utf8) { size += try take(1) }
        let count = Int(String(decoding: size.dropLast(2), as: UTF8.self), radix: 16) ?? 0
        return Array(try take(count + 2).dropLast(2))
    }

    private func receiveHead() throws -> Reply {
        var head: [UInt8] = []
        while !head.suffix(4).elementsEqual("\r\n\r\n".utf8) { head += try take(1) }
        var reply = Reply()
        let lines = String(decoding: head, as: UTF8.self).components(separatedBy: "\r\n")
        reply.status = Int(lines[0].split(separator: " ")[1]) ?? 0
        for line in lines.dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1)
            if parts.count == 2 { reply.fields[parts[0].lowercased()] = String(parts[1].dropFirst()) }
        }
        return reply
    }

    private func take(_ count: Int) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        var done = 0
        while done < count {
            let got = bytes[done...].withUnsafeMutableBytes { recv(descriptor, $0.baseAddress, $0.count, 0) }
            guard got > 0 else { throw ConnectionEnded() }
            done += got
        }
        return bytes
    }
}

/// A folder for one test, removed when it is released.
final class TemporaryFolder: Sendable {
    let path: String

    init() throws {
        path = NSTemporaryDirectory() + "pages-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func write(_ name: String, _ content: some Sequence<UInt8>) throws {
        let url = URL(fileURLWithPath: path + "/" + name)
        try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(content).write(to: url)
    }

    func link(_ name: String, to target: String) throws {
        try FileManager.default.createSymbolicLink(atPath: path + "/" + name, withDestinationPath: target)
    }
}
