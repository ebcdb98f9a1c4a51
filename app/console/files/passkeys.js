// Passkeys: the browser asks an authenticator what the API wants to know, and the API judges the answer.
import { api } from "./api.js";

/** Whether this browser can, and the address is a host's name: passkeys belong to names. */
export const passkeysWork =
  "PublicKeyCredential" in window &&
  "parseRequestOptionsFromJSON" in PublicKeyCredential &&
  !/^[\d.]+$|^\[/.test(location.hostname);

/** What a person sees who has no such passkey, or has thought better of it. */
export class NotGiven extends Error {}

/**
 * Adds one to the account of who is signed in.
 * @param {string} name
 */
export async function addPasskey(name) {
  const { data } = await api.send("POST", "/passkey_challenges");
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(data.options);
  const credential = await asked(() => navigator.credentials.create({ publicKey }));
  return api.send("POST", "/passkeys", { name, credential });
}

/** Signs its person in. */
export async function usePasskey() {
  const { data } = await api.send("POST", "/sign_in_challenges");
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(data.options);
  const credential = await asked(() => navigator.credentials.get({ publicKey }));
  return api.send("POST", "/sign_ins/passkeys", { credential }, { keyless: true });
}

/** @param {() => Promise<Credential | null>} ask */
async function asked(ask) {
  try {
    const credential = await ask();
    if (credential instanceof PublicKeyCredential) return credential.toJSON();
  } catch (fault) {
    if (fault instanceof DOMException && fault.name === "InvalidStateError") {
      throw new NotGiven("This authenticator has a passkey for you already.");
    }
    if (!(fault instanceof DOMException)) throw fault;
  }
  throw new NotGiven("No passkey was given.");
}
