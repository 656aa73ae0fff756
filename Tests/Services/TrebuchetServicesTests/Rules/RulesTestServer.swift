import Trebuchet

/// Signs its caller in under any name.
@Trebuchet
distributed actor RulesTestServer {
    static let name = "doorman"

    /// The roles of its caller.
    distributed func roles() -> Set<String> { Caller.current?.principal?.roles ?? [] }

    distributed func become(_ id: String?, _ roles: Set<String>) {
        Caller.current?.connection.principal = id.map { Principal(id: $0, roles: roles) }
    }

    /// Ends the session of its caller.
    distributed func revoke() { Caller.current?.connection.revokeAccess("the session has ended") }

    distributed func become(_ id: String, claiming claims: [String: String]) {
        Caller.current?.connection.principal = Principal(id: id, claims: claims)
    }
}
