internal import Platform

/// The changes that a store write has.
extension DocumentTable {
    struct Unwritten: Sendable {
        let document: Document?
        let revision: Int
    }

    /// The changes of one store write.
    struct Batch: Sendable {
        /// The bytes of a line without its document or outcomes.
        private static let lineOverhead = 256

        var documents: [DocumentID: Unwritten] = [:]
        var clients: [(client: ByteText, change: MutationWindowChange)] = []
        var revision = 0
        /// The time of the last write.
        var time = 0
        /// The number of documents after the batch.
        var documentCount = 0

        /// The approximate size of its entries.
        var byteCount: Int {
            documents.values.reduce(0) { $0 + Self.lineOverhead + ($1.document?.byteCount ?? 0) }
                + clients.reduce(0) { $0 + Self.lineOverhead + ($1.change.window?.byteCount ?? 0) }
        }
    }
}
