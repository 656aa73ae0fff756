#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A message from the server, as far as the tests look into it.
struct Message: Decodable {
    struct Payload: Decodable {
        struct Failure: Decodable {
            var code: String
            var message: String
        }

        var callID: String?
        var streamID: String?
        var sequenceNumber: UInt64?
        var reason: String?
        var reconnectAfterMilliseconds: Int?
        var error: Failure?
        var result: Int?
        var data: Board.State?
    }

    var type: String
    var payload: Payload

    init(_ text: String) throws { self = try JSONDecoder().decode(Message.self, from: Data(text.utf8)) }
}
