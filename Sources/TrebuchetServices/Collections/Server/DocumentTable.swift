internal import Trebuchet

/// The documents of a collection and what is remembered of its clients: what is written, and what is still to be written.
/// Pure.
///
/// Commands look at both; readers are shown what is written alone. The order in which mutations come here is that of the
/// collection: of two writes to one field the later one counts, whenever its client made it.
struct DocumentTable: Sendable {
    struct Unwritten: Sendable {
        let document: Document?
        let revision: Int
    }

    /// What is written to the store together.
    struct Batch: Sendable {
        var documents: [DocumentID: Unwritten] = [:]
        /// Nil for clients that are forgotten.
        var clients: [ByteText: MutationWindow?] = [:]
        var revision = 0
        /// The time of the last write.
        var time = 0
    }

    /// As it is in the store.
    private(set) var documents: [DocumentID: Document]
    private var unwritten: [DocumentID: Unwritten] = [:]
    /// Outcomes of mutations that changed nothing are not written, and forgotten with the process.
    private var clients: [ByteText: MutationWindow]
    /// What the store has of the clients whose windows are not written.
    private var writtenClients: [ByteText: MutationWindow?] = [:]
    private var unwrittenClients: [ByteText: MutationWindow?] = [:]
    /// The number of the last write.
    private(set) var revision: Int
    /// The latest time of a write, in milliseconds since 1970: none is earlier than those before it.
    private var time: Int
    private let limits: CollectionLimits
    /// Those still to be written too.
    private var count: Int
    private var bytes: Int

    init(
        limits: CollectionLimits, documents: [DocumentID: Document] = [:], clients: [ByteText: MutationWindow] = [:],
        revision: Int = 0, time: Int = 0
    ) {
        self.limits = limits
        self.documents = documents
        self.clients = clients
        self.revision = revision
        self.time = time
        count = documents.count
        bytes = documents.values.reduce(0) { $0 + $1.byteCount }
    }

    var isEmpty: Bool { count == 0 && documents.isEmpty && unwritten.isEmpty }
    var hasUnwritten: Bool { !unwritten.isEmpty || !unwrittenClients.isEmpty }
    /// How many clients are remembered.
    var clientCount: Int { clients.count }

    /// A document, as the next command finds it.
    func document(_ id: DocumentID) -> Document? {
        if let pending = unwritten[id] { return pending.document }
        return documents[id]
    }

    // MARK: Commands

    /// Does a mutation, unless that was done before: then it gives the outcome of that time.
    ///
    /// - Parameters:
    ///   - now: milliseconds since 1970.
    ///   - may: whether the client may do something with a document.
    mutating func apply(
        _ mutation: DocumentMutation, from client: String, creator: String?, at now: Int,
        may: (CollectionAction, Document) -> Bool
    ) -> MutationOutcome {
        let client = ByteText(client)
        if let outcome = clients[client]?.outcome(of: mutation) { return outcome }
        time = max(time, now)
        let outcome: MutationOutcome
        do throws(CollectionError) {
            let changed = try perform(mutation.command, creator: creator, may: may)
            outcome = MutationOutcome(number: mutation.number, revision: revision)
            remember(outcome, of: mutation.command, by: client, isWritten: changed)
        } catch {
            outcome = MutationOutcome(number: mutation.number, revision: revision, error: error)
            remember(outcome, of: mutation.command, by: client, isWritten: false)
        }
        return outcome
    }

    /// False when there was nothing to be done.
    private mutating func perform(
        _ command: DocumentCommand, creator: String?, may: (CollectionAction, Document) -> Bool
    ) throws(CollectionError) -> Bool {
        let id = command.id
        guard (1...CollectionLimits.longestName).contains(id.byteCount) else {
            throw .invalidDocument("an id has 1 to \(CollectionLimits.longestName) bytes")
        }
        let before = document(id)
        let action: CollectionAction
        var after: Document?
        switch command {
        case .create(_, let fields):
            guard before == nil else { throw .alreadyExists(id: id.text) }
            action = .create
            after = Document(
                id: id, fields: fields, creator: creator, created: revision + 1, revision: revision + 1,
                createdAt: time, updatedAt: time)
        case .update(_, let fields):
            (action, after) = (.update, before)
            after?.set(fields)
        case .link(_, let field, let target):
            (action, after) = (.update, before)
            after?.setLink(true, field, target)
        case .unlink(_, let field, let target):
            (action, after) = (.update, before)
            after?.setLink(false, field, target)
        case .delete:
            guard before != nil else { return false }
            action = .delete
        }
        guard let subject = before ?? after else { throw .notFound(id: id.text) }
        guard may(action, subject) else { throw .forbidden(action, id: id.text) }
        if let after {
            guard Document.id(after.fields["id"]) == id else {
                throw .invalidDocument("its member 'id' is not '\(id)'")
            }
            guard after.fields != before?.fields else { return false }
        }
        try put(after, for: id, before: before)
        return true
    }

    private mutating func put(_ document: Document?, for id: DocumentID, before: Document?) throws(CollectionError) {
        let size = document?.byteCount ?? 0
        let growth = size - (before?.byteCount ?? 0)
        guard size <= limits.documentBytes else {
            throw .documentTooLarge(id: id.text, bytes: size, limit: limits.documentBytes)
        }
        if before == nil, count >= limits.documentsPerCollection {
            throw .tooManyDocuments(limit: limits.documentsPerCollection)
        }
        guard growth <= 0 || bytes + growth <= limits.collectionBytes else {
            throw .collectionTooLarge(limit: limits.collectionBytes)
        }
        revision += 1
        bytes += growth
        count += (document == nil ? 0 : 1) - (before == nil ? 0 : 1)
        var document = document
        document?.revision = revision
        document?.updatedAt = time
        unwritten[id] = Unwritten(document: document, revision: revision)
    }

    private mutating func remember(
        _ outcome: MutationOutcome, of command: DocumentCommand, by client: ByteText, isWritten: Bool
    ) {
        if isWritten, writtenClients[client] == nil { writtenClients[client] = .some(clients[client]) }
        clients[client, default: MutationWindow()].remember(outcome, of: command)
        if isWritten { unwrittenClients[client] = clients[client] }
        guard clients.count > limits.rememberedClients else { return }
        // Many at once: to look for the oldest each time would take too long.
        let others = clients.filter { $0.key != client }.sorted { $0.value.revision < $1.value.revision }
        for (forgotten, _) in others.prefix(max(1, clients.count / 10)) {
            clients[forgotten] = nil
            unwrittenClients[forgotten] = .some(nil)
        }
    }

    // MARK: Writing

    /// All that is to be written; nil when that is nothing.
    mutating func beginWrite() -> Batch? {
        guard hasUnwritten else { return nil }
        // Later changes of the same clients are to be written again.
        defer { unwrittenClients = [:] }
        return Batch(documents: unwritten, clients: unwrittenClients, revision: revision, time: time)
    }

    /// A batch is in the store; returns what that changes for readers.
    mutating func endWrite(_ batch: Batch) -> [DocumentChange] {
        for (client, window) in batch.clients {
            writtenClients[client] = unwrittenClients[client] == nil ? nil : .some(window)
        }
        let inOrder = batch.documents.sorted { $0.value.revision < $1.value.revision }
        return inOrder.map { id, written in
            documents[id] = written.document
            if unwritten[id]?.revision == written.revision { unwritten[id] = nil }
            return DocumentChange(id: id, after: written.document)
        }
    }

    /// What was to be written cannot be: all is as the store has it, so that the same mutations can come again.
    mutating func discardUnwritten() {
        for (client, window) in writtenClients { clients[client] = window }
        (unwritten, unwrittenClients, writtenClients) = ([:], [:], [:])
        count = documents.count
        bytes = documents.values.reduce(0) { $0 + $1.byteCount }
    }
}
