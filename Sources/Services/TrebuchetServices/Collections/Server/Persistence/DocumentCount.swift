internal import Trebuchet
internal import TrebuchetWire

/// The number of documents of a collection, a value beside its log, for lists of collections that are not loaded.
///
/// Its key is the one where older servers, which stored each document as a value, had the number of the last write. They cannot
/// decode it, so they refuse a collection with a log instead of treating it as empty.
struct DocumentCount: Sendable {
    let documents: Int

    init(documents: Int) { self.documents = documents }

    /// Returns nil for any other value.
    init?(_ bytes: [UInt8]?) {
        guard let bytes, case .object(let members)? = try? JSONValue(json: bytes),
            case .integer(let count)? = members["documents"]
        else { return nil }
        documents = Int(count)
    }

    static func key(_ namespace: String) -> StateKey { StateKey(namespace, "revision") }

    var bytes: [UInt8] { Array(#"{"documents":\#(documents)}"#.utf8) }
}
