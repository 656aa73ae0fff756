import Testing

import Transports
@testable import WebSockets

/// The negotiation of permessage-deflate (RFC 7692 §5, §7.1), as tables.
@Suite struct NegotiatedCompressionTests {
    private static func made(
        serverKeeps: Bool = false, clientKeeps: Bool = false, server: Int = 15, client: Int = 15
    ) -> WebSocketCompression {
        var settings = WebSocketCompression()
        settings.serverNoContextTakeover = !serverKeeps
        settings.clientNoContextTakeover = !clientKeeps
        settings.serverMaxWindowBits = server
        settings.clientMaxWindowBits = client
        return settings.bounded
    }

    private static let keeps = made(serverKeeps: true, clientKeeps: true)
    private static let small = made(serverKeeps: true, clientKeeps: true, server: 10, client: 11)
    private static let none = "server_no_context_takeover; client_no_context_takeover"

    static let madeOffers: [(offer: String, settings: WebSocketCompression, answer: String?)] = [
        ("permessage-deflate", keeps, ""),
        ("permessage-deflate", made(), none),
        ("permessage-deflate; server_no_context_takeover", keeps, "server_no_context_takeover"),
        ("permessage-deflate; client_no_context_takeover", keeps, "client_no_context_takeover"),
        ("permessage-deflate; server_max_window_bits=10", keeps, "server_max_window_bits=10"),
        ("permessage-deflate; server_max_window_bits=15", keeps, "server_max_window_bits=15"),
        ("permessage-deflate; server_max_window_bits=12", small, "server_max_window_bits=10"),
        ("permessage-deflate; server_max_window_bits=\"10\"", keeps, "server_max_window_bits=10"),
        ("permessage-deflate; client_max_window_bits", keeps, ""),
        ("permessage-deflate; client_max_window_bits=9", keeps, "client_max_window_bits=9"),
        ("permessage-deflate; client_max_window_bits=8", keeps, "client_max_window_bits=8"),
        ("permessage-deflate; client_max_window_bits=14", keeps, "client_max_window_bits=14"),
        ("permessage-deflate; client_max_window_bits=15", keeps, ""),
        (
            "permessage-deflate; client_max_window_bits", small,
            "server_max_window_bits=10; client_max_window_bits=11"
        ),
        // Parameters that the client did not offer are not requested.
        ("permessage-deflate", small, "server_max_window_bits=10"),
        // The first acceptable offer.
        ("x-other, permessage-deflate; client_max_window_bits", keeps, ""),
        (
            "permessage-deflate; unknown, permessage-deflate; server_no_context_takeover", keeps,
            "server_no_context_takeover"
        ),
        ("permessage-deflate; server_max_window_bits=8, permessage-deflate", keeps, ""),
        // No acceptable offer.
        ("x-webkit-deflate-frame", keeps, nil),
        ("permessage-deflate; server_max_window_bits=8", keeps, nil),
        ("permessage-deflate; server_max_window_bits", keeps, nil),
        ("permessage-deflate; server_max_window_bits=7", keeps, nil),
        ("permessage-deflate; server_max_window_bits=16", keeps, nil),
        ("permessage-deflate; server_max_window_bits=010", keeps, nil),
        ("permessage-deflate; client_max_window_bits=x", keeps, nil),
        ("permessage-deflate; server_no_context_takeover=1", keeps, nil),
        ("permessage-deflate; server_no_context_takeover; server_no_context_takeover", keeps, nil),
    ]

    @Test("a server accepts the first offer that it supports", arguments: madeOffers)
    func offers(_ offer: String, _ settings: WebSocketCompression, _ answer: String?) throws {
        let list = try #require(WebSocketExtension.list(["Sec-WebSocket-Extensions": offer]))
        let agreement = NegotiatedCompression.answer(list, settings)
        #expect(
            agreement?.description == answer.map { $0.isEmpty ? "permessage-deflate" : "permessage-deflate; \($0)" })
    }

    @Test(
        "a malformed list of extensions is rejected",
        arguments: [
            "permessage-deflate;", "permessage deflate", "; a", "a; b=", "a; b=\"", "a; b=\"c d\"", "a; =b", "a=b",
        ])
    func malformed(_ text: String) {
        #expect(WebSocketExtension.list(["Sec-WebSocket-Extensions": text]) == nil)
    }

    @Test(
        "a client offers its settings",
        arguments: [
            (made(), "\(none); client_max_window_bits"), (keeps, "client_max_window_bits"),
            (small, "server_max_window_bits=10; client_max_window_bits=11"),
        ])
    func offer(_ settings: WebSocketCompression, _ parameters: String) {
        #expect(NegotiatedCompression.offer(settings) == "permessage-deflate; \(parameters)")
    }

    static let givenAnswers: [(answer: String, settings: WebSocketCompression, isGood: Bool)] = [
        ("permessage-deflate", keeps, true), ("permessage-deflate", made(), false),
        ("permessage-deflate; server_no_context_takeover", made(), true),
        ("permessage-deflate; client_no_context_takeover", keeps, true),
        ("permessage-deflate; server_max_window_bits=10", keeps, true),
        ("permessage-deflate; server_max_window_bits=10", small, true),
        ("permessage-deflate; server_max_window_bits=9", small, true),
        ("permessage-deflate; server_max_window_bits=11", small, false), ("permessage-deflate", small, false),
        ("permessage-deflate; client_max_window_bits=8", keeps, true),
        ("permessage-deflate; client_max_window_bits", keeps, false),
        ("permessage-deflate; unknown", keeps, false),
        ("permessage-deflate; server_max_window_bits=16", keeps, false),
        ("permessage-deflate; client_no_context_takeover; client_no_context_takeover", keeps, false),
        ("permessage-bzip2", keeps, false),
    ]

    @Test("a client accepts only responses that match its offer", arguments: givenAnswers)
    func answers(_ answer: String, _ settings: WebSocketCompression, _ isGood: Bool) throws {
        let element = try #require(WebSocketExtension(answer))
        #expect((NegotiatedCompression(answer: element, to: settings) != nil) == isGood)
    }

    @Test("settings out of bounds are clamped")
    func bounds() {
        var settings = WebSocketCompression()
        settings.threshold = -1
        settings.level = 12
        settings.serverMaxWindowBits = 8
        settings.clientMaxWindowBits = 99
        let bounded = settings.bounded
        #expect((bounded.threshold, bounded.level) == (1, 9))
        #expect((bounded.serverMaxWindowBits, bounded.clientMaxWindowBits) == (9, 15))
    }
}
