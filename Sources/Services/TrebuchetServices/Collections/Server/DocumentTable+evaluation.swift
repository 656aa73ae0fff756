internal import Platform

/// The evaluation of mutations. Only its end changes documents.
extension DocumentTable {
    /// The number of starts after which a mutation is not executed.
    private static let maximumStarts = 16
    /// The number of bytes of a document that count as a step of an evaluation.
    private static let bytesOfStep = 256

    /// The decisions that a mutation needs from outside.
    typealias Permission = (CollectionAction, Document) -> Bool

    /// Executes a mutation atomically. A repeated mutation has its recorded outcome.
    ///
    /// - Parameters:
    ///   - now: milliseconds since 1970.
    ///   - isThere: returns whether a document exists in another collection.
    ///   - check: throws when the client may not make a change; nil calls `may` for the document to change.
    ///   - may: returns whether the client may perform an action; called before any detail of the document is revealed.
    mutating func apply(
        _ mutation: DocumentMutation, from client: String, creator: String?, origin: UInt32? = nil, at now: Int,
        isThere: (LinkTarget) -> Bool = { _ in false }, check: ChangeCheck? = nil, may: Permission
    ) -> MutationOutcome {
        var evaluation = MutationEvaluation(mutation, from: ByteText(client), creator: creator, origin: origin)
        while true {
            var slice = ScanSlice.unlimited
            let part = resume(&evaluation, &slice, at: now, isThere: isThere, check: check, may: may)
            if case .complete(let outcome) = part { return outcome }
        }
    }

    /// The result of a part of an evaluation.
    enum EvaluationPart {
        /// The evaluation must be resumed.
        case incomplete
        /// The mutation was not executed: its documents have changed again and again.
        case contended
        case complete(MutationOutcome)
    }

    /// Evaluates writes of a mutation for a time slice, at least one; the last part applies the changes. For the parameters see
    /// `apply`.
    mutating func resume(
        _ evaluation: inout MutationEvaluation, _ slice: inout ScanSlice, at now: Int,
        isThere: (LinkTarget) -> Bool, check: ChangeCheck?, may: Permission
    ) -> EvaluationPart {
        // It may have been repeated over another connection meanwhile.
        if let outcome = recordedOutcome(of: evaluation.mutation, by: evaluation.client) { return .complete(outcome) }
        if !evaluation.isStarted || !evaluation.isValid(isThere: isThere, { self.document($0) }) {
            guard evaluation.starts < Self.maximumStarts else { return .contended }
            start(&evaluation, at: now)
        }
        let writes = evaluation.mutation.writes
        func failure(_ error: CollectionError, at index: Int?) -> EvaluationPart {
            let outcome = MutationOutcome(
                number: evaluation.mutation.number, revision: revision, error: error,
                index: writes.count > 1 ? index : nil)
            remember(outcome, of: evaluation, isWritten: false)
            return .complete(outcome)
        }
        while evaluation.next < writes.count {
            let bytes: Int
            do throws(CollectionError) {
                bytes = try perform(writes[evaluation.next], &evaluation, isThere: isThere, check: check, may: may)
            } catch {
                return failure(error, at: evaluation.next)
            }
            evaluation.advance()
            if evaluation.next < writes.count, slice.isOver(afterSteps: 1 + bytes / Self.bytesOfStep) {
                return .incomplete
            }
        }
        // Others may have used the quotas meanwhile.
        if let (error, id) = exceededQuota(of: evaluation) {
            return failure(error, at: writes.lastIndex { $0.command.id == id })
        }
        evaluation.renumber(after: revision, at: time)
        apply(evaluation)
        let outcome = MutationOutcome(number: evaluation.mutation.number, revision: revision)
        remember(outcome, of: evaluation, isWritten: evaluation.hasChanges)
        return .complete(outcome)
    }

    /// Records the refusal of a mutation by a limit outside the table. A repeated mutation has its recorded outcome.
    mutating func refuse(_ evaluation: borrowing MutationEvaluation, _ error: CollectionError) -> MutationOutcome {
        if let outcome = recordedOutcome(of: evaluation.mutation, by: evaluation.client) { return outcome }
        let outcome = MutationOutcome(number: evaluation.mutation.number, revision: revision, error: error)
        remember(outcome, of: evaluation, isWritten: false)
        return outcome
    }

    /// Returns the quota that the changes of a complete evaluation exceed after those of others, and the document.
    private func exceededQuota(of evaluation: borrowing MutationEvaluation) -> (CollectionError, DocumentID)? {
        guard evaluation.firstRevision != revision else { return nil }
        let changes = evaluation.changes.map { (id: $0.id, after: $0.document, before: document($0.id)) }
        func growth(_ change: (id: DocumentID, after: Document?, before: Document?)) -> Int {
            (change.after?.encodedByteCount ?? 0) - (change.before?.encodedByteCount ?? 0)
        }
        var others = DocumentQuotas()
        // In this order there is room if there is room in any.
        for (id, after, before) in changes.sorted(by: { growth($0) < growth($1) }) {
            if let after {
                do throws(CollectionError) {
                    try shares.check(before, with: after, limits, beyond: others)
                } catch {
                    return (error, id)
                }
            }
            others.replace(before, with: after)
        }
        return nil
    }

    private mutating func start(_ evaluation: inout MutationEvaluation, at now: Int) {
        advanceTime(to: now)
        for write in evaluation.mutation.writes { expireIfDue(write.command.id) }
        evaluation.start(at: time, revision: revision)
    }

    /// A document that the client may not read does not exist for its commands: any other outcome, or the index of the first refused
    /// command, would reveal its existence or content. Creation is the exception, because an id can be used only once.
    ///
    /// - Returns: the size of the document before and after the write.
    private func perform(
        _ write: DocumentWrite, _ evaluation: inout MutationEvaluation, isThere: (LinkTarget) -> Bool,
        check: ChangeCheck?, may: Permission
    ) throws(CollectionError) -> Int {
        let command = write.command
        guard (1...CollectionLimits.maximumNameLength).contains(command.id.byteCount) else {
            throw .invalidDocument("an id has 1 to \(CollectionLimits.maximumNameLength) bytes")
        }
        var before = evaluation.document(command.id) { self.document($0) }
        if let document = before, command.action != .create, !may(.read, document) { before = nil }
        return try perform(write, on: before, &evaluation, isThere: isThere, check: check, may: may)
    }

    private func perform(
        _ write: DocumentWrite, on before: Document?, _ evaluation: inout MutationEvaluation,
        isThere: (LinkTarget) -> Bool, check: ChangeCheck?, may: Permission
    ) throws(CollectionError) -> Int {
        let command = write.command
        let id = command.id
        if let before, command.action != .create, !may(command.action, before) {
            let change =
                command.action == .delete
                ? DocumentChangeRequest(deleting: before) : DocumentChangeRequest(updating: before, to: before)
            // The check knows the reason.
            try check?(change)
            throw change.forbidden()
        }
        if let before, write.condition != nil, !may(.read, before) {
            // The outcome of a condition reveals content; to create is refused as without one.
            throw .alreadyExists(id: id.text)
        }
        if let condition = write.condition, !condition.isSatisfied(by: before) { throw condition.failure(id, before) }
        let after: Document?
        if case .check = command {
            guard before != nil || write.condition?.isAbsent == true else { throw .notFound(id: id.text) }
            after = before
        } else {
            let context = CommandContext(
                creator: evaluation.creator, origin: evaluation.origin, number: evaluation.revision + 1,
                time: evaluation.time, lifetime: limits.lifetime(in: name))
            after = try command.perform(on: before, context)
        }
        if let target = command.target { try checkLink(target, &evaluation, isThere, may) }
        let bytes = max(before?.fields.byteCount ?? 0, after?.fields.byteCount ?? 0)
        guard after != before else { return bytes }
        if let change = DocumentChangeRequest(before, after) {
            if let check {
                try check(change)
            } else if !may(change.action, change.document) {
                throw change.forbidden()
            }
        }
        if let before, let after, after.expiryMilliseconds ?? .max < before.expiryMilliseconds ?? .max {
            // A shorter lifetime amounts to a deletion.
            let deletion = DocumentChangeRequest(deleting: before)
            try check?(deletion)
            guard may(.delete, before) else { throw deletion.forbidden() }
        }
        if let after, Document.id(after.fields["id"]) != id { throw .invalidDocument("its member 'id' is not '\(id)'") }
        let changed = try stamped(
            after, before: before, revision: evaluation.revision + 1, time: evaluation.time, limits,
            beyond: evaluation.quotas)
        let together = evaluation.put(changed, for: id, before: before, isMeasured: isEntry)
        guard !isEntry || together <= Self.maximumBatchCount else {
            // They must be written together.
            throw .documentTooLarge(id: id.text, bytes: together, limit: Self.maximumBatchCount)
        }
        return bytes
    }

    private func checkLink(
        _ target: LinkTarget, _ evaluation: inout MutationEvaluation, _ isThere: (LinkTarget) -> Bool, _ may: Permission
    ) throws(CollectionError) {
        let isFound: Bool
        if target.collection == name {
            let document = evaluation.document(target.id) { self.document($0) }
            isFound = document.map { may(.read, $0) } ?? false
        } else {
            isFound = isThere(target)
            evaluation.require(target)
        }
        guard isFound else { throw .linkTargetMissing(id: target.id.text, collection: target.collection) }
    }

    /// Returns a changed document with its revision and time; throws when it exceeds a limit.
    ///
    /// - Parameter quotas: quotas that other changes use in addition.
    func stamped(
        _ document: Document?, before: Document?, revision: Int, time: Int, _ limits: CollectionLimits,
        beyond quotas: DocumentQuotas
    ) throws(CollectionError) -> Document? {
        guard var document else { return nil }
        document.revision = revision
        document.updatedMilliseconds = time
        let size = document.byteCount
        guard size <= limits.documentBytes else {
            throw .documentTooLarge(id: document.id.text, bytes: size, limit: limits.documentBytes)
        }
        guard !document.fields.isDeeper(than: CollectionLimits.maximumDepth) else {
            throw .tooDeep(limit: CollectionLimits.maximumDepth)
        }
        try shares.check(before, with: document, limits, beyond: quotas)
        return document
    }
}
