#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A message from the server, with the members that the tests inspect.
struct Message: Decodable {
    struct Payload: Decodable {
        struct Failure: Decodable {
            var code: String
            var message: String
        }

        struct Operation: Decodable, Equatable {
            var op: String
            var path: String
            var value: Int?
        }

        var callID: String?
        var streamID: String?
        var sequenceNumber: UInt64?
        var reason: String?
        var reconnectAfterMilliseconds: Int?
        var error: Failure?
        /// The code of a `streamError`.
        var code: String?
        var result: Int?
        var data: SizedStateActor.State?
        var base: UInt64?
        var patch: [Operation]?
    }

    var type: String
    var payload: Payload

    init(_ text: String) throws { self = try JSONDecoder().decode(Message.self, from: Data(text.utf8)) }
}
