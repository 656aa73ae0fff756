import Glibc
import Trebuchet
import TrebuchetServices

/// `trebuchet admin import`
struct DocumentImport {
    /// What is handed over at once.
    private static let documentsPerRequest = 200
    private static let bytesPerRequest = 1 << 20
    private static let step = 10_000

    /// A line that is no good; what stands before it is there.
    struct BadLine: Error, CustomStringConvertible {
        let description: String
    }

    private let client: AdminClient
    private let file: String
    private let replaces: Bool
    /// Nil: where each line says.
    private let collection: String?
    private(set) var outcome = ImportOutcome()
    private var waiting: [(line: Int, document: Document)] = []
    private var waitingBytes = 0
    private var waitingFor = ""

    static func run(_ arguments: ParsedArguments) async throws {
        guard !arguments.has("--replace") || !arguments.has("--skip") else {
            throw UsageError("--replace and --skip: one of them")
        }
        let path = arguments.operands.first ?? "-"
        guard let input = path == "-" ? fdopen(STDIN_FILENO, "r") : fopen(path, "re") else {
            throw AdminClient.Refused(description: "\(path): \(String(cString: strerror(errno)))")
        }
        let client = try AdminClient(arguments)
        let interruption = Interruption(client.link)
        var work = DocumentImport(
            client: client, file: path == "-" ? "standard input" : path, replaces: arguments.has("--replace"),
            collection: arguments.string("--into"))
        do {
            try await work.read(input)
        } catch {
            work.tell()
            guard interruption.hasCome else { throw error }
            Console.error("trebuchet admin import: interrupted; doing it again goes on")
            exit(Interruption.status)
        }
        work.tell()
    }

    private init(client: AdminClient, file: String, replaces: Bool, collection: String?) {
        self.client = client
        self.file = file
        self.replaces = replaces
        self.collection = collection
    }

    private func tell() {
        print("\(outcome.created) created, \(outcome.replaced) replaced, \(outcome.skipped) skipped")
    }

    private mutating func read(_ input: UnsafeMutablePointer<FILE>) async throws {
        var number = 0
        var buffer: UnsafeMutablePointer<CChar>?
        var capacity = 0
        defer { free(buffer) }
        while case let count = getline(&buffer, &capacity, input), count >= 0, let text = buffer {
            number += 1
            let bytes = UnsafeRawBufferPointer(start: text, count: count)
            guard bytes.contains(where: { $0 > 0x20 }) else { continue }
            let line: ExportedDocument
            do {
                line = try parse(bytes)
            } catch {
                // What stands before it is done first.
                try await flush()
                throw BadLine(description: "\(file):\(number): \(error)")
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
        try await flush()
    }

    private func parse(_ bytes: UnsafeRawBufferPointer) throws -> ExportedDocument {
        guard bytes.count <= AdminLink.longestLine / 2 else {
            throw BadLine(description: "the line has more than \(AdminLink.longestLine / 2) bytes")
        }
        let value: JSONValue
        do {
            value = try JSONArgument.value(bytes)
        } catch {
            throw BadLine(description: "this is no JSON: \(error)")
        }
        if case .object(let members) = value, members["document"] == nil, let collection {
            guard let id = members["id"].flatMap(AnyDocument.id) else {
                throw BadLine(description: "a document needs a member id, a text or a whole number")
            }
            return ExportedDocument(collection: collection, document: Document(id: DocumentID(id), fields: members))
        }
        do {
            let line = try value.decode(ExportedDocument.self)
            return ExportedDocument(collection: collection ?? line.collection, document: line.document)
        } catch {
            throw BadLine(
                description: "this is no exported document, {\"collection\":…,\"document\":{…}}"
                    + (collection == nil ? "; plain documents need --into COLLECTION" : ""))
        }
    }

    /// Hands over what waits.
    private mutating func flush() async throws {
        guard !waiting.isEmpty else { return }
        let batch = waiting
        (waiting, waitingBytes) = ([], 0)
        let before = outcome.done
        let answer = try await client.ask(
            .restore(collection: waitingFor, documents: batch.map(\.document), replaces: replaces))
        guard case .restored(let part) = answer else { throw AdminClient.unexpected(answer) }
        outcome.add(part)
        if let problem = part.problem {
            throw BadLine(description: "\(file):\(batch[part.done].line): \(problem)")
        }
        if outcome.done / Self.step > before / Self.step {
            Console.error("trebuchet admin import: \(outcome.done) documents so far")
        }
    }
}
