import Commands
import Glibc
import Platform
import Trebuchet
import TrebuchetServices

/// `trebuchet admin import`: reads documents from lines of JSON.
struct DocumentImport {
    /// The maximum number of documents per request.
    private static let documentsPerRequest = 100
    private static let bytesPerRequest = 512 << 10
    private static let step = 10_000

    /// The error of an invalid line; the lines before it were imported.
    struct InvalidLine: Error, CustomStringConvertible {
        let description: String
    }

    private let client: AdminClient
    private let file: String
    private let replaces: Bool
    /// The target collection; nil if each line names its collection.
    private let collection: String?
    private(set) var outcome = ImportOutcome()
    private var waiting: [(line: Int, document: Document)] = []
    private var waitingBytes = 0
    private var waitingFor = ""

    static func run(_ arguments: ParsedArguments) async throws {
        guard !arguments.has("--replace") || !arguments.has("--skip") else {
            throw UsageError("--replace and --skip cannot be combined")
        }
        let path = arguments.operands.first ?? "-"
        let lines = try LineReader(path, maximumLength: AdminConnection.maximumLineLength / 2)
        let client = try AdminClient(arguments)
        let interruption = CommandInterruption(client.link)
        var work = DocumentImport(
            client: client, file: path == "-" ? "standard input" : path, replaces: arguments.has("--replace"),
            collection: arguments.string("--into"))
        do {
            try await work.read(lines) { interruption.wasReceived }
        } catch {
            guard interruption.wasReceived else {
                work.printProgress()
                throw error
            }
        }
        work.printProgress()
        guard interruption.wasReceived else { return }
        Console.error("trebuchet admin import: interrupted; repeat the command to continue")
        exit(interruption.status)
    }

    private init(client: AdminClient, file: String, replaces: Bool, collection: String?) {
        self.client = client
        self.file = file
        self.replaces = replaces
        self.collection = collection
    }

    private func printProgress() {
        Console.print("\(outcome.created) created, \(outcome.replaced) replaced, \(outcome.skipped) skipped")
    }

    private mutating func read(_ lines: LineReader, unless isOver: @escaping @Sendable () -> Bool) async throws {
        var number = 0
        while true {
            number += 1
            let line: ExportedDocument
            let count: Int
            do {
                guard let text = try await lines.next(unless: isOver) else { break }
                guard text.contains(where: { $0 > 0x20 }) else { continue }
                count = text.count
                line = try text.withUnsafeBytes { try parse($0) }
            } catch {
                // Import the lines before it first.
                try await flush()
                throw InvalidLine(description: "\(file):\(number): \(error)")
            }
            if line.collection != waitingFor || waiting.count >= Self.documentsPerRequest
                || waitingBytes + count > Self.bytesPerRequest
            {
                try await flush()
            }
            waitingFor = line.collection
            waiting.append((number, line.document))
            waitingBytes += count
        }
        if !isOver() { try await flush() }
    }

    private func parse(_ bytes: UnsafeRawBufferPointer) throws -> ExportedDocument {
        let value: JSONValue
        do {
            value = try JSONArgument.value(bytes)
        } catch {
            throw InvalidLine(description: "invalid JSON: \(error)")
        }
        if case .object(let members) = value, members["document"] == nil, let collection {
            guard let id = members["id"].flatMap(AnyDocument.id) else {
                throw InvalidLine(description: "a document needs the member 'id', a string or an integer")
            }
            return ExportedDocument(collection: collection, document: Document(id: DocumentID(id), fields: members))
        }
        do throws(ImportedDocument.InvalidMember) {
            return try ImportedDocument(value, collection).exported()
        } catch {
            let hint = collection == nil && !error.isOfExport ? "; pass --into COLLECTION for plain documents" : ""
            throw InvalidLine(description: "\(error.description)\(hint)")
        }
    }

    /// Sends the waiting documents.
    private mutating func flush() async throws {
        guard !waiting.isEmpty else { return }
        let batch = waiting
        (waiting, waitingBytes) = ([], 0)
        let before = outcome.done
        let answer = try await client.request(
            .restore(collection: waitingFor, documents: batch.map(\.document), replaces: replaces))
        guard case .restored(let part) = answer else { throw AdminClient.unexpected(answer) }
        outcome.merge(part)
        if let problem = part.problem {
            throw InvalidLine(description: "\(file):\(batch[part.done].line): \(problem)")
        }
        if outcome.done / Self.step > before / Self.step {
            Console.error("trebuchet admin import: \(outcome.done.counted("document")) so far")
        }
    }
}
