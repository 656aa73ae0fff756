import Commands
import Glibc
import Platform
import Synchronization
import Trebuchet
import TrebuchetServices

/// One line of an export.
struct ExportedDocument: Codable {
    let collection: String
    let document: Document
}

/// Ends long work at SIGINT and SIGTERM: closes the connection, so that pending requests fail.
final class CommandInterruption: Sendable {
    private let received = Atomic<Int32>(0)

    init(_ link: AdminConnection) {
        for signal in [ProcessSignal.interrupt, .terminate] {
            ShutdownSignals([signal]).onFirst { [self] in
                received.store(signal.number, ordering: .sequentiallyConsistent)
                link.abort()
            }
        }
    }

    var wasReceived: Bool { received.load(ordering: .sequentiallyConsistent) != 0 }

    /// The status that a shell uses for a program ended by the signal: 130 for SIGINT, 143 for SIGTERM.
    var status: Int32 { 128 + received.load(ordering: .sequentiallyConsistent) }
}

/// `trebuchet admin export`: writes documents as lines of JSON.
enum DocumentExport {
    private static let step = 10_000

    static func run(_ arguments: ParsedArguments) async throws {
        let client = try AdminClient(arguments)
        let interruption = CommandInterruption(client.link)
        var count = 0
        do {
            if let name = arguments.operands.first {
                try await export(name, client, &count)
            } else {
                var last: String?
                while true {
                    let answer = try await client.request(.collections(after: last, limit: 500))
                    guard case .collections(let page) = answer else { throw AdminClient.unexpected(answer) }
                    for collection in page { try await export(collection.name, client, &count) }
                    guard page.count == 500 else { break }
                    last = page.last?.name
                }
            }
        } catch {
            guard interruption.wasReceived else { throw error }
            Console.error(
                "trebuchet admin export: stopped after \(count.counted("document")); the export is incomplete")
            exit(interruption.status)
        }
    }

    private static func export(_ name: String, _ client: AdminClient, _ total: inout Int) async throws {
        try await client.send(.export(collection: name))
        var count = 0
        while true {
            switch try await client.answer() {
            case .document(let document):
                let line = try JSONValue(encoding: ExportedDocument(collection: name, document: document))
                Console.print(LogLine.ofJSON(JSONArgument.text(line)))
                count += 1
                total += 1
                if count % step == 0 {
                    Console.error("trebuchet admin export: \(count.counted("document")) of '\(name)' so far")
                }
            case .end(let all):
                guard all == count else {
                    throw AdminClient.RequestRejected(
                        description: "the export of '\(name)' is incomplete: it has \(count) of "
                            + "\(all.counted("document")); repeat the command")
                }
                return Console.error("trebuchet admin export: \(count.counted("document")) of '\(name)'")
            case let other: throw AdminClient.unexpected(other)
            }
        }
    }
}
