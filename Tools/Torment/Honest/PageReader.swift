import Foundation
import Glibc
import Platform
import Synchronization
import TestSupport

/// An honest browser: it requests pages over a persistent connection and compares the responses with the files.
final class PageReader: ControlClient {
    private enum Request: Equatable { case going, resting, leaving }

    let ledger: ControlClientRecord
    private let port: Int
    private let request = Mutex(Request.going)
    private let isResting = Mutex(false)

    init(name: String, port: Int) {
        ledger = ControlClientRecord(name: name)
        self.port = port
        startThread { [self] in run() }
    }

    func pause() async -> Bool {
        request.withLock { $0 = .resting }
        return await eventually(within: .seconds(30)) { isResting.withLock { $0 } }
    }

    func resume() { request.withLock { if $0 != .leaving { $0 = .going } } }

    func stop() async { request.withLock { $0 = .leaving } }

    private static let pages: [(path: String, status: Int, body: Data)] = [
        ("/", 200, Data("<p>here</p>\n".utf8)), ("/small.js", 200, Data("export {}\n".utf8)),
        ("/more.bin", 200, Data(repeating: 8, count: (60 << 10) + 1)),
        ("/nothing", 404, Data("page not found\n".utf8)),
        ("/folder/", 200, Data("<p>there</p>\n".utf8)),
    ]

    private func run() {
        var socket: HostileSocket?
        var number = 0
        while true {
            switch request.withLock({ $0 }) {
            case .leaving:
                socket?.close()
                return
            case .resting:
                // An open connection is not one of a hostile client, but uses a descriptor of the server.
                socket?.close()
                socket = nil
                isResting.withLock { $0 = true }
                usleep(5_000)
            case .going:
                isResting.withLock { $0 = false }
                // The server ends a connection with its thousandth response.
                if socket == nil || number % 500 == 0 {
                    socket?.close()
                    socket = HostileSocket(port: port, receiveBuffer: nil, isSecure: false)
                }
                guard let open = socket else { continue }
                let begun = ContinuousClock.now
                if let problem = fetch(Self.pages[number % Self.pages.count], over: open) {
                    ledger.problem(problem)
                    return isResting.withLock { $0 = true }
                }
                ledger.took(ContinuousClock.now - begun)
                number += 1
                usleep(2_000)
            }
        }
    }

    /// The fault of the response, or nil.
    private func fetch(_ page: (path: String, status: Int, body: Data), over socket: HostileSocket) -> String? {
        var rest = Array("GET \(page.path) HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8)[...]
        let end = ContinuousClock.now + .seconds(30)
        var answer = Data()
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
        defer { buffer.deallocate() }
        while ContinuousClock.now < end {
            if !rest.isEmpty {
                switch socket.write(rest) {
                case .bytes(let count): rest = rest.dropFirst(count)
                case .wouldBlock: _ = socket.wait(for: POLLOUT, milliseconds: 100)
                case .ended: return "the connection ended before the request for \(page.path)"
                }
                continue
            }
            guard socket.wait(for: POLLIN, milliseconds: 100) else { continue }
            switch socket.read(into: buffer) {
            case .bytes(let count): answer.append(contentsOf: buffer[..<count])
            case .wouldBlock: continue
            case .ended: return "the connection ended within the response for \(page.path)"
            }
            guard let head = answer.firstRange(of: Data("\r\n\r\n".utf8)) else { continue }
            let body = answer[head.upperBound...]
            guard body.count >= page.body.count else { continue }
            guard answer.starts(with: Data("HTTP/1.1 \(page.status) ".utf8)), body == page.body else {
                return "\(page.path) was answered with \(String(decoding: answer.prefix(100), as: UTF8.self))"
            }
            return nil
        }
        return "\(page.path) was not answered in 30 s"
    }
}
