import Foundation
import Trebuchet

/// The code of Docs/Guides/HTTP.md, which `HTTPRouteTests` runs.
struct Push: Codable, Sendable {
    var ref: String
}

@Trebuchet
distributed actor DeployLog {
    @StreamedState(persisted: true) var refs: [String] = []

    @Idempotent
    distributed func record(_ ref: String) -> Int {
        refs.append(ref)
        return refs.count
    }
}

func addWebhook(to server: TrebuchetServer, secret: String) throws {
    try server.http { routes in
        routes.post("/webhooks/deploys", bodyBytes: 64 << 10) { request in
            let signature = (request.headers["X-Hub-Signature-256"] ?? "").dropFirst("sha256=".count)
            guard request.isSigned(hmacSHA256: String(signature), key: secret) else {
                return .problem(401, "the signature does not belong to the body")
            }
            let push = try request.json(as: Push.self)
            let log = try request.actorSystem.resolve(DeployLog.self, id: "deploys")
            _ = try await log.record(push.ref)
            return .status(204)
        }
    }
}

func addPayments(to server: TrebuchetServer, secret: String, paid: @escaping @Sendable (String) async -> Void) throws {
    try server.http { routes in
        routes.post("/webhooks/stripe") { request in
            var (time, signatures) = ("", [String]())  // Stripe-Signature: t=1700000000,v1=5257…,v1=…
            for part in (request.headers["Stripe-Signature"] ?? "").split(separator: ",") {
                if part.hasPrefix("t=") { time = String(part.dropFirst(2)) }
                if part.hasPrefix("v1=") { signatures.append(String(part.dropFirst(3))) }
            }
            let signed = Array("\(time).".utf8) + request.body
            guard let seconds = Double(time), abs(Date().timeIntervalSince1970 - seconds) < 300,
                signatures.contains(where: { request.isSigned(hmacSHA256: $0, key: secret, message: signed) })
            else { return .problem(400, "the signature is invalid or too old") }
            struct Event: Decodable { var id: String }
            await paid(try request.json(as: Event.self).id)
            return .status(200)
        }
    }
}

func addOrders(to server: TrebuchetServer) throws {
    struct Order: Codable { var id: String, state: String }
    try server.http { routes in
        routes.get("/orders/:id", authenticated: true) { request in
            guard request.caller?.principal?.roles.contains("clerk") == true else {
                throw TrebuchetError(.unauthorized, "orders are for clerks")
            }
            return try .json(Order(id: request.parameters["id"] ?? "", state: request.query("state") ?? "any"))
        }
    }
}

func accessForPages(of origins: Set<String>) -> AccessPolicy {
    var access = AccessPolicy(authenticate: AccessPolicy.apiKeys(["k3y": Principal(id: "ada")]))
    access.acceptsHTTPCalls = true
    access.cors = CORSPolicy(origins: origins)  // exact, without *
    access.cors?.maximumAge = .seconds(3_600)
    return access
}

func accessForScripts(_ keys: [String: Principal]) -> AccessPolicy {
    var access = AccessPolicy(authenticate: AccessPolicy.apiKeys(keys))
    access.acceptsHTTPCalls = true
    return access
}
