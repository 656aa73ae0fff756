internal import Trebuchet
internal import TrebuchetWire

/// How many documents a collection has: a value beside its log, for those who list collections without reading them.
///
/// It is under the key where servers that kept each document as a value had how far writes had come. They cannot read it, and refuse
/// a collection that is a log instead of taking it for an empty one.
struct DocumentCount: Sendable {
    let documents: Int

    init(documents: Int) { self.documents = documents }

    /// Nil for what is something else.
    init?(_ bytes: [UInt8]?) {
        guard let bytes, case .object(let members)? = try? JSONValue(json: bytes),
            case .integer(let count)? = members["documents"]
        else { return nil }
        documents = Int(count)
    }

    static func key(_ namespace: String) -> StateKey { StateKey(namespace, "revision") }

    var bytes: [UInt8] { Array(#"{"documents":\#(documents)}"#.utf8) }
}
