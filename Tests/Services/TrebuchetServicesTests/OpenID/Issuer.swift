import Bytes
import Networking
import Relays
import Synchronization
import TestSupport
import Transports
import TrebuchetTesting

/// An issuer on this machine: an HTTP server with responses set by the test.
final class Issuer: Sendable {
    struct Answers: Sendable {
        /// The whole responses by path.
        var pages: [String: String] = [:]
        /// True while responses are withheld.
        var isHeld = false
    }

    let answers = StateRelay(Answers())
    /// The requested paths.
    let asked = Journal()
    private let listener: Listener

    init(port: Int = 0) throws {
        let (answers, asked) = (answers, asked)
        listener = try Listener.bind(
            host: "127.0.0.1", port: port, reactors: ReactorGroup.servers(count: 1).reactors
        ) { channel in try? channel.start(Exchange(answers, asked)) }
    }

    var port: Int { listener.address.port }
    var url: String { "http://127.0.0.1:\(port)" }
    func close() async { await listener.close() }

    /// Sets the body of the response to a path.
    func show(_ body: String, at path: String = "/jwks", fields: String = "") {
        answers.update {
            $0.pages[path] = "HTTP/1.1 200 OK\r\nContent-Length: \(body.utf8.count)\r\n\(fields)\r\n\(body)"
        }
    }

    func show(_ keys: [TestSigningKey], fields: String = "") {
        show(#"{"keys":[\#(keys.map(\.json).joined(separator: ","))]}"#, fields: fields)
    }

    /// A connection on its reactor.
    private final class Exchange: ByteChannelDelegate {
        private let answers: StateRelay<Answers>
        private let asked: Journal
        private var text = ""

        init(_ answers: StateRelay<Answers>, _ asked: Journal) {
            self.answers = answers
            self.asked = asked
        }

        func channel(_ channel: ByteChannel, didRead bytes: UnsafeMutableRawBufferPointer) {
            text += String(decoding: bytes, as: UTF8.self)
            guard text.hasSuffix("\r\n\r\n") else { return }
            let path = text.split(separator: " ").dropFirst().first.map(String.init) ?? ""
            asked.record(path)
            let answers = answers
            Task {
                for await state in answers.stream where !state.isHeld {
                    let page = state.pages[path] ?? "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
                    channel.reactor.execute {
                        channel.write { (buffer: inout ByteBuffer) in buffer.append(utf8: page) }
                        channel.closeAfterFlush()
                    }
                    break
                }
            }
        }

        func channelDidBecomeWritable(_ channel: ByteChannel) {}
        func channelDidClose(_ channel: ByteChannel, error: TransportError?) {}
    }
}
