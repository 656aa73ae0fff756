internal import Bytes
internal import Platform
internal import Trebuchet

/// Sign-in with the ID token of a provider.
extension Accounts {
    private static let maximumIdentities = 16

    func signIn(
        idToken: String, provider name: String, nonce: String?, on connection: CallerConnection
    ) async throws(AuthError) -> SessionGrant {
        try await loggingRefusals("to sign in with a token of '\(name.prefix(bytes: 64))'", connection) {
            () throws(AuthError) in
            try await consumeRate(.attempt, connection)
            guard let keys = providers[ByteText(name)] else { throw .unknownProvider }
            let identity = try await keys.identity(of: idToken, nonce: nonce)
            try await makeRoom()
            return try await inTurn(of: connection) { transaction throws(AuthError) in
                try await signIn(identity, linking: keys.provider.linksAccountsByEmail, on: connection, in: transaction)
            }
        }
    }

    /// - Parameter linking: true when the identity's address may be used: it finds the account that has it, or becomes the
    ///   address of the new account.
    private func signIn(
        _ identity: Identity, linking: Bool, on connection: CallerConnection, in transaction: AccountTransaction
    ) async throws(AuthError) -> SessionGrant {
        if let owner = try await transaction.owner(ofIdentity: identity.name),
            let account = try await transaction.account(owner)
        {
            return try await beginSession(of: owner, account, on: connection, in: transaction)
        }
        // The address of a provider that is not trusted for addresses is ignored; otherwise its later owner would reach the
        // same account.
        let address = linking ? identity.address : nil
        if let address, let owner = try await transaction.owner(ofAddress: address.text),
            var account = try await transaction.account(owner)
        {
            var identities = account.identities ?? []
            guard identities.count < Self.maximumIdentities else { throw .limitReached("identities") }
            identities.append(identity.name)
            account.identities = identities
            return try await beginSession(of: owner, account, on: connection, in: transaction)
        }
        return try await becomeUser(on: connection, in: transaction) { account in
            account.identities = [identity.name]
            account.email = address?.text
        }
    }
}
